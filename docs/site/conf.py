"""How Sphinx builds the site from the assembled pages."""

from __future__ import annotations

from prevalens import __version__

project = "prevalens"
author = "the prevalens developers"
copyright = "2026, the prevalens developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
# Names in single backticks are code in docstrings, as in Markdown.
default_role = "code"
myst_heading_anchors = 4
myst_links_external_new_tab = False
# Docstrings have the types, with shapes.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# scikit-learn adds these to every estimator, with links into its own site.
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_predict_request, set_score_request, "
    "set_predict_proba_request, set_transform_request, set_partial_fit_request"
}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "prevalens"
html_baseurl = "https://prevalens.github.io/prevalens/"
# The second folder is written by assemble.py, and so is that of the leaderboard.
html_static_path = ["static", "../../build/docs/colours"]
html_extra_path = ["../../build/docs/extra"]
html_css_files = ["extra.css", "figures.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "prevalens"},
    "icon_links": [
        {
            "name": "Repository",
            "url": "https://github.com/prevalens/prevalens",
            "icon": "fa-brands fa-github",
        }
    ],
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
}
html_sidebars = {"index": []}
