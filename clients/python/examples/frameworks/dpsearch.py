"""A table, and a search over a naive Bayes classifier of diffprivlib in scikit-learn's habits."""

import sys
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from diffprivlib.models import GaussianNB
from recipe import data

from dpfront import Float
from dpfront.integrations.sklearn import DPSearchCV

search = DPSearchCV(  # the line
    GaussianNB(bounds=(-4, 4)),
    [Float("epsilon", 0.01, 10, log=True)],
    n_trials=int(sys.argv[1]) if len(sys.argv) > 1 else 16,
    max_epsilon=1.0,
)
x, y = data()
search.fit(x.clip(-4, 4), y, public=data(500, seed=2))

results = search.cv_results_
for k in sorted(range(len(results["params"])), key=lambda k: results["epsilon"][k]):
    mark = "front" if results["on_front"][k] else ""
    print(f"ε {results['epsilon'][k]:7.3f}  accuracy {results['mean_test_score'][k]:.3f}  {mark}")
print(f"best: {search.best_params_}, accuracy {search.best_score_:.3f}")
print(search.search_statement_)

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError:
    sys.exit()
for kind, style in ((False, "o"), (True, "s")):
    chosen = results["on_front"] == kind
    pyplot.semilogx(results["epsilon"][chosen], results["mean_test_score"][chosen], style)
pyplot.xlabel("ε")
pyplot.ylabel("accuracy")
pyplot.savefig("dpsearch.png")
