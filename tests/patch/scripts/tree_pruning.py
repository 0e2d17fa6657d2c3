"""Cost complexity pruning: smaller trees, and which is best on new rows."""

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

X, y = make_classification(2000, 12, n_informative=6, flip_y=0.1, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
path = DecisionTreeClassifier(max_depth=6, random_state=0).cost_complexity_pruning_path(X_train, y_train)
print(len(path.ccp_alphas), path.ccp_alphas[-4:].round(5), path.impurities[-4:].round(5))
for alpha in path.ccp_alphas[-6:]:
    model = DecisionTreeClassifier(max_depth=6, random_state=0, ccp_alpha=alpha).fit(X_train, y_train)
    print(model.tree_.node_count, model.get_depth(), round(model.score(X_test, y_test), 4))
