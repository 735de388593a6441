"""Loops that somebody wrote by hand, of every shape: the same result as without us, one step an iteration."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loops import BATCH, BATCHES, FEATURES, ROWS, data, error, learn, loader, net, sgd
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from watching import Loop, See, Watch, alike, watching

EPOCHS = 3


def ordinary(see: See) -> Any:
    """The loop of every tutorial."""
    model = net()
    see(model)
    optimizer, batches = sgd(model), loader()
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS) for batch in batches]


def new_loader_each_epoch(see: See) -> Any:
    model = net()
    see(model)
    optimizer = sgd(model)
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS) for batch in loader()]


def accumulation(see: See) -> Any:
    """Two batches for one optimizer step: two micro-batches of one step."""
    model = net()
    see(model)
    optimizer, losses = sgd(model), []
    for number, batch in enumerate(itertools.chain(loader(), loader())):
        loss = error(model, batch) / 2
        loss.backward()
        losses.append(loss.item())
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return model, losses


def gan(see: See) -> Any:
    """Two optimizers in one iteration."""
    maker, critic = net(FEATURES), net()
    see(maker, critic)
    making, judging, losses = sgd(maker), sgd(critic), []
    for features, _ in loader():
        noise = torch.randn_like(features)
        judging.zero_grad()
        with torch.no_grad():
            fake = maker(noise)
        (critic(features).mean() - critic(fake).mean()).backward()
        judging.step()
        making.zero_grad()
        loss = critic(maker(noise)).mean()
        loss.backward()
        making.step()
        losses.append(loss.item())
    return maker, critic, losses


def critic_five_times_a_batch(see: See) -> Any:
    """WGAN: five critic steps on a batch, then one of the generator."""
    maker, critic = net(FEATURES), net()
    see(maker, critic)
    making, judging, losses = sgd(maker), sgd(critic), []
    for features, _ in loader():
        for _ in range(5):
            judging.zero_grad()
            (critic(maker(torch.randn_like(features)).detach()).mean() - critic(features).mean()).backward()
            judging.step()
        making.zero_grad()
        loss = critic(maker(torch.randn_like(features))).mean()
        loss.backward()
        making.step()
        losses.append(loss.item())
    return maker, critic, losses


def accumulation_by_hand(see: See) -> Any:
    """A batch cut in two, one optimizer step for both halves."""
    model = net()
    see(model)
    optimizer, losses = sgd(model), []
    for features, labels in loader():
        for part in zip(features.chunk(2), labels.chunk(2), strict=True):
            loss = error(model, part) / 2
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return model, losses


def one_batch(see: See) -> Any:
    """One batch, fetched once and trained on again and again."""
    model = net()
    see(model)
    optimizer = sgd(model)
    batch = next(iter(loader()))
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS * BATCHES)]


def delayed_actor(see: See) -> Any:
    """Off-policy reinforcement learning: a critic each iteration, actor and temperature each second one."""
    critic, actor, temperature = net(), net(), net()
    see(critic, actor, temperature)
    optimizers = [sgd(critic), sgd(actor), sgd(temperature)]

    def update(number: int, batch: Any) -> float:
        loss = learn(critic, optimizers[0], batch)
        if number % 2:
            for model, optimizer in zip((actor, temperature), optimizers[1:], strict=True):
                learn(model, optimizer, batch)
        return loss

    batches = list(loader())
    losses = [update(n, batches[n % BATCHES]) for n in range(EPOCHS * BATCHES)]
    return critic, actor, temperature, losses


def folds(see: See) -> Any:
    """Cross-validation without a loader: a model and an optimizer of its own for each fold."""
    batches, kept = list(loader()), []
    for _ in range(EPOCHS):
        model = net()
        see(model)
        optimizer = sgd(model)
        for batch in batches:
            learn(model, optimizer, batch)
        kept.append((model, optimizer))
    return [model for model, _ in kept]


def by_hand(see: See) -> Any:
    """Weights updated by hand: no optimizer at all."""
    model = net()
    see(model)
    losses = []
    for batch in loader():
        loss = error(model, batch)
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(parameter.grad, alpha=-0.01)
        losses.append(loss.item())
    return model, losses


def by_gradients(see: See) -> Any:
    """Gradients from `autograd.grad`, put in by hand: no backward pass is called."""
    model = net()
    see(model)
    optimizer, parameters, losses = sgd(model), list(model.parameters()), []
    for batch in list(loader()):
        loss = error(model, batch)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def second_batch_in_the_middle(see: See) -> Any:
    """Two optimizers, and a further batch fetched between them: one iteration."""
    first, second = net(), net()
    see(first, second)
    optimizers, batches, losses = [sgd(first), sgd(second)], iter(loader()), []
    for _ in range(BATCHES // 2):
        losses.append(learn(first, optimizers[0], next(batches)))
        losses.append(learn(second, optimizers[1], next(batches)))
    return first, second, losses


def generator_every_fifth_batch(see: See) -> Any:
    """WGAN's other form: a critic step a batch, and the generator's at every fifth."""
    maker, critic = net(FEATURES), net()
    see(maker, critic)
    making, judging = sgd(maker), sgd(critic)
    for number, (features, _) in enumerate(loader(), 1):
        judging.zero_grad()
        (critic(maker(torch.randn_like(features)).detach()).mean() - critic(features).mean()).backward()
        judging.step()
        if not number % 5:
            making.zero_grad()
            critic(maker(torch.randn_like(features))).mean().backward()
            making.step()
    return maker, critic


class Sharp(torch.optim.Optimizer):
    """SAM: climbs, then lets another optimizer step from where it was."""

    def __init__(self, parameters: Any, base: torch.optim.Optimizer) -> None:
        super().__init__(parameters, {})
        self.base = base

    @torch.no_grad()
    def climb(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["from"] = parameter.clone()
                parameter.add_(parameter.grad, alpha=0.05)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.copy_(self.state[parameter]["from"])
        self.base.step()


def sam(see: See) -> Any:
    """Two backward passes a step, and an optimizer that calls another's step inside its own."""
    model = net()
    see(model)
    optimizer, losses = Sharp(model.parameters(), sgd(model)), []
    for batch in loader():
        error(model, batch).backward()
        optimizer.climb()
        optimizer.zero_grad()
        loss = error(model, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return model, losses


class Twice(torch.optim.SGD):
    """An optimizer whose step is its parent's, and a bit more: torch's hooks fire for both."""

    def step(self, closure: Any = None) -> Any:
        result = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.mul_(0.999)
        return result


def parents_step(see: See) -> Any:
    model = net()
    see(model)
    sgd(model)  # only with an instance of the parent are both hooked
    optimizer = Twice(model.parameters(), lr=0.05)
    return model, [learn(model, optimizer, batch) for batch in loader()]


def lbfgs(see: See) -> Any:
    """Closures: forward and backward run inside the optimizer, several times a step."""
    model = nn.Linear(FEATURES, 1)
    see(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    losses = []
    for batch in loader():

        def closure(batch: Any = batch) -> torch.Tensor:
            optimizer.zero_grad()
            loss = error(model, batch)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return model, losses


def lbfgs_without_loader(see: See) -> Any:
    model, batch = nn.Linear(FEATURES, 1), data()[:]
    see(model)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = error(model, batch)
        loss.backward()
        return loss

    return model, [optimizer.step(closure).item() for _ in range(BATCHES)]


def scaled(see: See, batches: Any, **options: Any) -> Any:
    """float16 on the CPU, with a first scale so large that the scaler skips until it has come down."""
    model = net()
    see(model)
    optimizer, losses = sgd(model, **options), []
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40, growth_interval=10**6, backoff_factor=2.0**-6)
    for batch in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = error(model, batch)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert scaler.get_scale() < 2.0**40
    return model, losses


def scaler_skips(see: See) -> Any:
    return scaled(see, loader())


def scaler_skips_fused(see: See) -> Any:
    """A fused optimizer is called in any case and skips inside (torch's with momentum is not repeatable)."""
    return scaled(see, loader(), fused=True, momentum=0.0)


def scaler_skips_without_loader(see: See) -> Any:
    return scaled(see, list(loader()))


def optimizer_in_backward(see: See, batches: Any = None) -> Any:
    """One optimizer a parameter, stepped by the gradient's own hook."""
    model = net()
    see(model)
    optimizers = {p: torch.optim.SGD([p], lr=0.05) for p in model.parameters()}

    def step(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    losses = []
    for batch in loader() if batches is None else batches:
        loss = error(model, batch)
        loss.backward()
        losses.append(loss.item())
    return model, losses


def optimizer_in_backward_without_loader(see: See) -> Any:
    return optimizer_in_backward(see, list(loader()))


def preloaded(see: See) -> Any:
    """All batches fetched before the first is trained on."""
    model = net()
    see(model)
    optimizer, batches = sgd(model), list(loader())
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS) for batch in batches]


def some_preloaded(see: See) -> Any:
    """A few batches fetched beforehand; the loader's end never comes."""
    model = net()
    see(model)
    optimizer, batches = sgd(model), list(itertools.islice(loader(), 4))
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS) for batch in batches]


def whole_batches(see: See) -> Any:
    """No loader at all."""
    model, batch = net(), data()[:]
    see(model)
    optimizer = sgd(model)
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS * BATCHES)]


def gan_without_loader(see: See) -> Any:
    maker, critic = net(FEATURES), net()
    see(maker, critic)
    making, judging = sgd(maker), sgd(critic)
    real = torch.randn(BATCH, FEATURES)
    for _ in range(BATCHES):
        judging.zero_grad()
        (critic(maker(torch.randn_like(real)).detach()).mean() - critic(real).mean()).backward()
        judging.step()
        making.zero_grad()
        critic(maker(torch.randn_like(real))).mean().backward()
        making.step()
    return maker, critic


def iterator_by_hand(see: See) -> Any:
    """`next(iterator)` in a loop over numbers, begun anew where it ends."""
    model, batches = net(), loader()
    see(model)
    optimizer, losses, iterator = sgd(model), [], iter(batches)
    for _ in range(EPOCHS * BATCHES):
        try:
            batch = next(iterator)
        except StopIteration:
            iterator = iter(batches)
            batch = next(iterator)
        losses.append(learn(model, optimizer, batch))
    return model, losses


def one_ahead(see: See) -> Any:
    """A prefetcher: the next batch is fetched before this one is trained on."""
    model, iterator = net(), iter(loader())
    see(model)
    optimizer, losses = sgd(model), []
    batch = next(iterator, None)
    while batch is not None:
        coming = next(iterator, None)
        losses.append(learn(model, optimizer, batch))
        batch = coming
    return model, losses


def cycled(see: See) -> Any:
    """After the first round the batches come from memory."""
    model, batches = net(), itertools.cycle(loader())
    see(model)
    optimizer = sgd(model)
    return model, [learn(model, optimizer, next(batches)) for _ in range(EPOCHS * BATCHES)]


class Stream(IterableDataset[Any]):
    """Rows one after another; its length is wrong, as lengths of streams are."""

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[Any]:
        for _ in range(ROWS):
            yield torch.randn(FEATURES), torch.randn(1)


def stream(see: See) -> Any:
    model = net()
    see(model)
    optimizer = sgd(model)
    return model, [learn(model, optimizer, batch) for batch in DataLoader(Stream(), batch_size=BATCH)]


def zipped(see: See) -> Any:
    """Labelled and unlabelled batches side by side."""
    model = net()
    see(model)
    optimizer, losses = sgd(model), []
    for (features, target), (more, _) in zip(loader(), loader(), strict=True):
        optimizer.zero_grad()
        loss = (model(features) - target).pow(2).mean() + model(more).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def hard_batches_only(see: See) -> Any:
    """Every other batch is looked at without gradients and passed over."""
    model = net()
    see(model)
    optimizer, losses = sgd(model), []
    for number, batch in enumerate(loader()):
        with torch.no_grad():
            losses.append(error(model, batch).item())
        if number % 2:
            losses.append(learn(model, optimizer, batch))
    return model, losses


def frozen_mode(see: See) -> Any:
    """Fine-tuning with the model in evaluation mode, as is usual with frozen batch norms."""
    model = net().eval()
    see(model)
    optimizer = sgd(model)
    return model, [learn(model, optimizer, batch) for _ in range(EPOCHS) for batch in loader()]


#: Loop -> its iterations.
LOOPS: dict[Loop, int] = {
    ordinary: EPOCHS * BATCHES,
    new_loader_each_epoch: EPOCHS * BATCHES,
    accumulation: BATCHES,
    accumulation_by_hand: BATCHES,
    one_batch: EPOCHS * BATCHES,
    delayed_actor: EPOCHS * BATCHES,
    folds: EPOCHS * BATCHES,
    by_hand: BATCHES,
    by_gradients: BATCHES,
    second_batch_in_the_middle: BATCHES // 2,
    gan: BATCHES,
    critic_five_times_a_batch: 5 * BATCHES,
    generator_every_fifth_batch: BATCHES,
    sam: BATCHES,
    parents_step: BATCHES,
    lbfgs: BATCHES,
    lbfgs_without_loader: BATCHES,
    scaler_skips: BATCHES,
    scaler_skips_fused: BATCHES,
    scaler_skips_without_loader: BATCHES,
    optimizer_in_backward: BATCHES,
    optimizer_in_backward_without_loader: BATCHES,
    preloaded: EPOCHS * BATCHES,
    some_preloaded: EPOCHS * 4,
    whole_batches: EPOCHS * BATCHES,
    gan_without_loader: BATCHES,
    iterator_by_hand: EPOCHS * BATCHES,
    one_ahead: BATCHES,
    cycled: EPOCHS * BATCHES,
    stream: BATCHES,
    zipped: BATCHES,
    hard_batches_only: BATCHES // 2,
    frozen_mode: EPOCHS * BATCHES,
}


@pytest.mark.parametrize("named", [True, False], ids=["named", "found"])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_one_step_an_iteration_and_the_same_result(loop: Loop, named: bool, tmp_path: Path) -> None:
    """Losses and weights to the last bit, and as many steps as the loop had iterations."""
    watch = alike(loop, tmp_path, named=named)
    assert watch.steps == LOOPS[loop]
    assert watch.total("other") >= 0
    assert not watch.kinds("warn")


@pytest.mark.parametrize("loop", [ordinary, gan, accumulation, zipped, cycled])
def test_samples_are_those_of_the_batches(loop: Loop, tmp_path: Path) -> None:
    """Every step that fetched has its batch's samples; two loaders side by side count once."""
    found = alike(loop, tmp_path).column("samples")
    fetched = BATCHES if loop is cycled else len(found)
    batch = 2 * BATCH if loop is accumulation else BATCH
    assert [count for count in found if count == count] == [batch] * fetched


def test_a_batch_fetched_ahead_counts_where_it_was_fetched(tmp_path: Path) -> None:
    """Waiting, and with it the samples, belong to the step during which the loop waited; none is lost."""
    found = alike(one_ahead, tmp_path).column("samples")
    assert found[:-1] == [2 * BATCH] + [BATCH] * (BATCHES - 2)
    assert math.isnan(found[-1])


def test_a_step_with_two_fetches_has_the_samples_of_both(tmp_path: Path) -> None:
    """Two batches of one loader in one iteration add up."""

    def pairs(see: See) -> Any:
        model, iterator = net(), iter(loader())
        see(model)
        optimizer = sgd(model)
        for first, second in zip(iterator, iterator, strict=True):
            optimizer.zero_grad()
            (error(model, first) + error(model, second)).backward()
            optimizer.step()
        return model

    watch = alike(pairs, tmp_path)
    assert watch.column("samples") == [2 * BATCH] * (BATCHES // 2)


def optimizer_steps(loop: Loop, folder: Path) -> list[float]:
    return alike(loop, folder).column("optimizer_steps")


@pytest.mark.parametrize("loop", [accumulation, accumulation_by_hand])
def test_micro_batches_are_counted_beside_the_step(loop: Loop, tmp_path: Path) -> None:
    """Two micro-batches for each optimizer step, whether a loader gives them or a batch is cut by hand."""
    watch = alike(loop, tmp_path)
    assert watch.column("micro_batches") == [2] * BATCHES
    assert watch.column("optimizer_steps") == [1] * BATCHES


def gradients_of_single_samples(see: See) -> Any:
    """Each sample's gradient is asked for and put in by hand, as differentially private training does."""
    model = net()
    see(model)
    optimizer, weights = sgd(model), list(model.parameters())
    for batch in loader():
        optimizer.zero_grad()
        for one in zip(*(column.split(2) for column in batch), strict=True):
            found = torch.autograd.grad(error(model, one), weights)
            for weight, gradient in zip(weights, found, strict=True):
                weight.grad = gradient if weight.grad is None else weight.grad + gradient
        optimizer.step()
    return model


def gradient_penalty(see: See) -> Any:
    """The gradient of the input is a part of the loss."""
    model = net()
    see(model)
    optimizer = sgd(model)
    for features, _target in loader():
        features.requires_grad_()
        (slope,) = torch.autograd.grad(model(features).sum(), features, create_graph=True)
        optimizer.zero_grad()
        (model(features).mean() + slope.square().mean()).backward()
        optimizer.step()
    return model


def test_gradients_put_in_by_hand_are_micro_batches(tmp_path: Path) -> None:
    """Four of two samples each make a step; no backward pass runs there. A penalty's are none."""
    watch = alike(gradients_of_single_samples, tmp_path)
    assert watch.column("micro_batches") == [BATCH / 2] * BATCHES
    assert watch.column("backward_calls") == [0.0] * BATCHES
    assert alike(gradient_penalty, tmp_path).column("micro_batches") == [1.0] * BATCHES


@pytest.mark.parametrize("loop", [ordinary, gan, whole_batches, gan_without_loader, delayed_actor])
def test_a_step_that_accumulates_nothing_has_one_micro_batch(loop: Loop, tmp_path: Path) -> None:
    """Several losses in one iteration are no micro-batches."""
    assert set(alike(loop, tmp_path).column("micro_batches")) == {1}


def test_optimizers_inside_others_are_not_counted(tmp_path: Path) -> None:
    """SAM's base optimizer, a parent's step, LBFGS's closures: one outermost step each."""
    loops = {sam: 1, parents_step: 1, lbfgs: 1, gan: 2}
    assert {loop: set(optimizer_steps(loop, tmp_path)) for loop in loops} == {
        k: {n} for k, n in loops.items()
    }


def test_each_step_has_its_own_counts_from_the_first_on(tmp_path: Path) -> None:
    """Also where the first step's end is known only once the second step's optimizer ran."""
    loops = {whole_batches: 1, preloaded: 1, gan_without_loader: 2}
    assert {loop: set(optimizer_steps(loop, tmp_path)) for loop in loops} == {
        k: {n} for k, n in loops.items()
    }


@pytest.mark.parametrize("loop", [scaler_skips, scaler_skips_fused, scaler_skips_without_loader])
def test_skipped_steps_are_seen_without_asking_the_device(loop: Loop, tmp_path: Path) -> None:
    """Whether the scaler skipped, in each step: first it does, then it does not."""
    watch = alike(loop, tmp_path)
    skipped = watch.column("amp_skipped")
    assert skipped == sorted(skipped, reverse=True)
    assert set(skipped) == {0.0, 1.0}
    assert watch.facts()["precision"]["scaler_skips"] == sum(skipped)


def test_the_loss_is_the_users(tmp_path: Path) -> None:
    """The loss on the tape is the one that the loop saw, scaled or not."""
    seen: list[list[float]] = []

    def loop(see: See) -> Any:
        result = scaled(see, loader())
        seen.append(result[1])
        return result

    assert alike(loop, tmp_path).column("loss") == pytest.approx(seen[0], rel=1e-3)


def test_the_last_step_ends_where_it_was_last_active(tmp_path: Path) -> None:
    """What comes between the loop's last optimizer step and detach belongs to no step."""
    model = net()
    with watching(tmp_path, model) as watch:
        optimizer = sgd(model)
        for batch in loader():
            learn(model, optimizer, batch)
            time.sleep(0.02)
        time.sleep(1.0)
    assert watch.steps == BATCHES
    assert watch.rows[-1]["step_ms"] < 1e3


def outcome(folder: Path, loop: Any) -> Watch:
    """A loop that calls the boundary's `step` itself, as `session.step()` does."""
    model = net()
    with watching(folder, model) as watch:
        for batch in loader():
            loop(model, batch)
            watch.recorder.clock.begin()
            watch.probe.boundary.step()
    return watch


def test_a_step_told_by_the_user_ends_there_and_nowhere_else(tmp_path: Path) -> None:
    """With `session.step()` neither fetches nor optimizers end one as well."""
    model_optimizer: dict[Any, Any] = {}

    def training(model: nn.Module, batch: Any) -> None:
        learn(model, model_optimizer.setdefault(model, sgd(model)), batch)

    def inference(model: nn.Module, batch: Any) -> None:
        with torch.no_grad():
            error(model, batch)

    assert [outcome(tmp_path, loop).steps for loop in (training, inference)] == [BATCHES, BATCHES]


def test_the_end_of_the_training_loader_is_told(tmp_path: Path) -> None:
    """After each epoch's last step; an evaluation's end is none of it."""
    with watching(tmp_path) as watch:
        model = net()
        optimizer = sgd(model)
        for _ in range(2):
            for batch in loader():
                learn(model, optimizer, batch)
            with torch.no_grad():
                for features, _ in loader():
                    model(features)
    assert [event["step"] for event in watch.kinds("exhausted")] == [BATCHES, 2 * BATCHES]
