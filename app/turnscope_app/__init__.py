"""The turnscope explorer (Streamlit)."""
