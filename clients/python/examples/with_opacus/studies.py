"""Creates the studies of the programs named *_tuned.py, on the server in DPARETO_SERVER.

python studies.py && python mnist_tuned.py
"""

import dpfront
from dpfront import Float, Int, Maximize

privacy = dpfront.opacus(dataset_size=500, noise_multiplier="sigma", epochs="epochs", delta=1e-5)

with dpfront.Client() as client:
    for name in ("mnist", "cifar10", "names", "table", "finetune"):
        dpfront.Study.create(
            client,
            name,
            parameters=[
                Float("lr", 1e-3, 5, log=True),
                Float("sigma", 0.7, 4, log=True),
                Int("batch_size", 32, 256, log=True),
                Int("epochs", 1, 4),
            ],
            metrics=[Maximize("accuracy", 0.1, "logit"), dpfront.epsilon(privacy)],
            checkpoint_parameter="epochs",
            max_trials=16,
        )
