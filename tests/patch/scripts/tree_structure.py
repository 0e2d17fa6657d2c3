"""The arrays of a fitted tree, its text and its way for a row."""

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, export_text

wine = load_wine()
X_train, X_test, y_train, y_test = train_test_split(wine.data, wine.target, random_state=0)
model = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X_train, y_train)
tree = model.tree_
print(tree.node_count, tree.children_left, tree.children_right, tree.feature, tree.threshold.round(3))
print(export_text(model, feature_names=list(wine.feature_names)))
print(model.decision_path(X_test[:3]).toarray(), model.apply(X_test[:3]))
print(model.score(X_test, y_test), model.feature_importances_.round(4))
