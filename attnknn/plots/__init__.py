"""Pictures of tables: numbers in, a Plotly figure out. No torch, no streamlit.

training_curve   a column of a table over epochs
"""
