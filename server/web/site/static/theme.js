// The theme that the reader has chosen, before anything is drawn.
'use strict';
try { document.documentElement.dataset.theme = localStorage.getItem('theme') || ''; } catch { /* the system decides */ }
