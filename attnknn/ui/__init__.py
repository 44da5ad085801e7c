"""The only package that imports streamlit. It never imports torch, faiss or umap."""
