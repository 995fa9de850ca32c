"""A text classifier: a tiny BERT with random weights in Hugging Face's Trainer."""

import torch
from opacus import PrivacyEngine
from recipe import RECORDS, search
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.data import default_data_collator

from dpfront.integrations.huggingface import trial_callback

WORDS = torch.randint(0, 20, (RECORDS + 200, 6), generator=torch.Generator().manual_seed(1))
TEXTS = [{"input_ids": x, "labels": int((x > 9).sum() > 3)} for x in WORDS]
CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=6,
)


def train(trial):
    """Trains one configuration."""
    engine, model = PrivacyEngine(), BertForSequenceClassification(CONFIG).train()
    model.bert.embeddings.requires_grad_(False)
    weights = [p for p in model.parameters() if p.requires_grad]
    lots = DataLoader(TEXTS[:RECORDS], trial["batch_size"], collate_fn=default_data_collator)
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.Adam(weights, lr=trial["lr"] / 10),
        data_loader=lots,
        noise_multiplier=trial["sigma"],
        max_grad_norm=1.0,
    )
    arguments = TrainingArguments(
        num_train_epochs=trial["epochs"],
        eval_strategy="epoch",
        save_strategy="no",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to=[],
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=TEXTS[:RECORDS],
        eval_dataset=TEXTS[RECORDS:],
        compute_metrics=lambda p: {"accuracy": (p.predictions.argmax(1) == p.label_ids).mean()},
        optimizers=(optimizer, None),
        callbacks=[trial_callback(trial, engine)],  # the line
    )
    trainer.get_train_dataloader = lambda: loader
    trainer.train()


if __name__ == "__main__":
    search(train)
