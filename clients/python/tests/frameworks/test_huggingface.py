"""The callback in real runs of Hugging Face's Trainer with Opacus, on a tiny random BERT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dpfront
from dpfront.integrations.huggingface import trial_callback

from .mistakes import DELTA, MISTAKES, RECORDS, check, make_study, marks

pytestmark = marks("transformers", "accelerate", "opacus")


def fit(trial: dpfront.Trial, mistake: str | None, folder: Path) -> None:
    """Fine-tunes a classifier of four words."""
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainingArguments,
        default_data_collator,
    )

    source = torch.Generator().manual_seed(1)
    words = torch.randint(1, 20, (RECORDS, 4), generator=source)
    data = [{"input_ids": x, "labels": int(x[0] > 10)} for x in words]
    sigma = trial["sigma"] * (0.5 if mistake == "noise" else 1)
    batch = trial["batch_size"] // (2 if mistake == "batch size" else 1)
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    model = BertForSequenceClassification(config)
    model.bert.embeddings.requires_grad_(False)  # of a fixed vocabulary
    engine = PrivacyEngine()
    model.train()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1),
        data_loader=DataLoader(data, batch_size=batch, collate_fn=default_data_collator),
        noise_multiplier=sigma,
        max_grad_norm=1.0,
    )

    class PrivateTrainer(Trainer):
        def get_train_dataloader(self) -> Any:
            return super().get_train_dataloader() if mistake == "sampler" else loader

    def accuracy(predicted: Any) -> dict[str, float]:
        if mistake == "delta" and engine.accountant.history:
            engine.get_epsilon(DELTA * 100)
        return {"accuracy": float((predicted.predictions.argmax(1) == predicted.label_ids).mean())}

    trainer = PrivateTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=trial["epochs"] + (mistake == "steps"),
            per_device_train_batch_size=batch,
            eval_strategy="epoch",
            save_strategy="no",
            report_to=[],
            remove_unused_columns=False,
            label_names=["labels"],
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=data,
        eval_dataset=data[:100],
        compute_metrics=accuracy,
        optimizers=(optimizer, None),
        callbacks=[trial_callback(trial, engine)],
    )
    trainer.train()


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
def test_five_mistakes(client: dpfront.Client, mistake: str | None, tmp_path: Path) -> None:
    check(make_study(client), mistake, lambda trial, wrong: fit(trial, wrong, tmp_path))


def test_the_server_ends_training(client: dpfront.Client, tmp_path: Path) -> None:
    study = make_study(client)
    trial = study.ask(fixed={"sigma": 1.0, "batch_size": 64, "epochs": 4})
    study.stop_trial(trial.number, "enough")
    fit(trial, None, tmp_path)
    assert study.trials()[0].raw.final_measurement.step == 1
