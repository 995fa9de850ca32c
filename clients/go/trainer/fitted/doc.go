// Package fitted keeps models that were trained on a user's own table: it writes and reads them, and
// predicts with them.
//
// A model is a folder. model.safetensors has the weights (layers.0.weight of shape out × in,
// layers.0.bias and so on, float64), in the format of https://github.com/huggingface/safetensors. card.json
// has everything else: the kind of the model, the schema by which rows are encoded, the guarantee, and how
// the configuration was chosen. model.onnx has both once more, for programs that run https://onnx.ai: its inputs are the
// columns of the schema. The card has no measured value: errors on validation and test rows are
// functions of these rows, which no guarantee of the training covers.
//
// The package imports trainer, model and dataset/table. It knows no server.
package fitted
