"""The only package that imports streamlit. It never imports torch, faiss or umap.

The web process answers many visitors with small matrices: more than one BLAS thread each would only make
them wait for one another. This is set before NumPy is imported, and only where nobody has decided otherwise.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
