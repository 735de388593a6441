/** The page of one run: takes what the feed brings to everything that shows it. */

import { History, StepTimes } from "../charts/history.js";
import { grown } from "../charts/panels.js";
import { TimeRange } from "../charts/range.js";
import { Selection } from "../charts/selection.js";
import { Track } from "../charts/series.js";
import { Charts } from "../charts/view.js";
import { Baseline } from "../compare/baseline.js";
import { Findings } from "../findings/list.js";
import { Verdict } from "../findings/verdict.js";
import { Feed } from "../net/feed.js";
import { Banner } from "./banner.js";
import { h } from "./dom.js";
import { Drawer } from "./drawer.js";
import { Place, placeOf } from "./route.js";
import { isLive, showTab, tabOf } from "./status.js";
import { HubClock, Strip } from "./strip.js";
import { Tiles, tilesOver } from "./tiles.js";

const MAX_TRACKS = { proc: 8, gpu: 16, cuda: 16, rank: 0 }; // streams of one kind that the page keeps
const MAX_OTHERS = 16; // of every other kind

export class RunView {
  element = h("div", { class: "run" });
  #schema = null;
  #tracks = new Map();
  #now = 0;
  #range = new TimeRange();
  #clock = new HubClock();
  #banner = new Banner();
  #strip = new Strip(this.#clock);
  #verdict = new Verdict();
  #baseline;
  #tiles = new Tiles();
  #newest = {}; // the last update
  #selection;
  #times;
  #findings;
  #place;
  #drawer;
  #charts;
  #history;
  #feed;
  #loading = false;

  constructor(run, theme) {
    this.#baseline = new Baseline(run);
    const at = placeOf(location.hash);
    this.#selection = new Selection(at.finding);
    if (at.range !== null) this.#range.hold(...at.range);
    else if (at.span !== null) this.#range.follow(at.span);
    this.#place = new Place(run, this.#range, this.#selection);
    this.#times = new StepTimes(run, () => { this.#findings.refresh(); this.#charts.mark(); });
    const span = (finding) => this.#times.span(finding, this.#now);
    const [selection, range, tracks] = [this.#selection, this.#range, this.#tracks];
    this.#findings = new Findings({ selection, range, span, tracks });
    this.#drawer = new Drawer(run, range, () => [...tracks.keys()]);
    const known = () => ({ schema: this.#schema, streams: [...this.#tracks.keys()], now: this.#now });
    this.#charts = new Charts({
      run, schema: () => this.#schema, tracks: this.#tracks, range: this.#range, theme, selection, span,
    });
    this.#history = new History({
      run, range: this.#range, tracks: this.#tracks, known, onLoaded: () => this.#charts.filled(),
    });
    this.#feed = new Feed(run, {
      snapshot: this.#snapshot, update: this.#update, gap: this.#gap,
      connection: (connection) => { this.#strip.connection(connection); this.#banner.connection(connection); },
      failure: (error) => this.#banner.failure(error),
    });
    this.#strip.element.append(this.#drawer.button);
    const side = h("div", { class: "side" }, this.#findings.element, this.#banner.offer);
    this.element.append(
      this.#banner.element, this.#verdict.element, this.#baseline.element, this.#tiles.element, side,
      this.#charts.element, this.#drawer.element,
    );
  }

  /** What stands in the page's top line while this run is shown. */
  get strip() {
    return this.#strip.element;
  }

  connect() {
    this.#range.connect(this.#moved);
    for (const part of [
      this.#banner, this.#baseline, this.#strip, this.#findings, this.#charts, this.#history, this.#place,
      this.#drawer, this.#feed,
    ]) {
      part.connect();
    }
  }

  disconnect() {
    this.#range.disconnect(this.#moved);
    for (const part of [
      this.#feed, this.#drawer, this.#place, this.#history, this.#charts, this.#findings, this.#times, this.#strip,
      this.#baseline, this.#banner,
    ]) {
      part.disconnect();
    }
  }

  /** What keys do on this page. */
  get actions() {
    return {
      l: () => this.#range.follow(),
      "+": () => this.#range.zoom(0.5),
      "=": () => this.#range.zoom(0.5),
      "-": () => this.#range.zoom(2),
      ArrowLeft: () => this.#range.move(-0.25),
      ArrowRight: () => this.#range.move(0.25),
      j: () => this.#findings.step(1),
      k: () => this.#findings.step(-1),
      c: () => this.#findings.copyFix(),
      Escape: () => this.#selection.clear(),
      d: () => this.#drawer.toggle(),
    };
  }

  #snapshot = (snapshot, hubUnixS) => {
    this.#clock.note(hubUnixS);
    this.#schema = snapshot.meta?.schema ?? snapshot.schema ?? null;
    this.#charts.declare(this.#schema?.panels ?? []);
    for (const name of streamNames(snapshot)) this.#track(name);
    this.#findings.known(snapshot.checks ?? []);
    this.#drawer.snapshot(snapshot);
    this.#history.request(0);
  };

  #update = (update) => {
    this.#clock.note(update.data_unix_s);
    this.#append(update.rows ?? {});
    this.#newest = update;
    for (const part of [this.#strip, this.#baseline, this.#banner, this.#findings, this.#drawer]) part.update(update);
    this.#verdict.update(update.verdict, update.saving);
    this.#showTiles();
    showTab(tabOf(update));
    const streams = [...this.#tracks.keys()];
    const some = (kind) => streams.some((name) => name.startsWith(`${kind}/`));
    this.#charts.has({ gpu: Boolean(update.tiles?.gpu) || some("gpu") });
    this.#charts.update(update);
    this.#charts.live(isLive(update.status));
    this.#now = Math.max(this.#now, update.now_s ?? 0);
    this.#range.advance(this.#now);
    this.#history.ensure();
    this.#charts.invalidate();
    this.#loadCharts();
  };

  #moved = (moved) => moved && this.#showTiles();

  #showTiles() {
    const { following, bounds } = this.#range;
    const { tiles } = this.#newest;
    this.#tiles.update(following ? tiles : tilesOver(this.#tracks, bounds, tiles, this.#schema));
  }

  #gap = () => {
    for (const track of this.#tracks.values()) track.cut();
    this.#history.request();
  };

  #append(rows) {
    this.#schema = grown(this.#schema, rows);
    for (const [name, columns] of Object.entries(rows)) this.#track(name)?.append(columns);
  }

  #track(name) {
    if (this.#tracks.has(name)) return this.#tracks.get(name);
    const [kind] = name.split("/", 1);
    const some = [...this.#tracks.keys()].filter((other) => other.startsWith(`${kind}/`)).length;
    if (some < (MAX_TRACKS[kind] ?? MAX_OTHERS)) this.#tracks.set(name, new Track());
    return this.#tracks.get(name);
  }

  // Two frames later the tiles have been painted; only then may 5 MB of chart library come down.
  #loadCharts() {
    if (this.#loading) return;
    this.#loading = true;
    requestAnimationFrame(() => requestAnimationFrame(() => this.#charts.load()));
    if (document.hidden) this.#charts.load();
  }
}

/** Streams that the run has. A hub that does not list them still says how many ranks and which hosts. */
function streamNames({ streams, world_size: ranks = 1, meta = {} }) {
  if (streams) return Object.keys(streams);
  const hosts = Array.isArray(meta.hosts) ? meta.hosts : Object.keys(meta.hosts ?? {});
  return ["run", ...Array.from({ length: ranks }, (_, rank) => `proc/${rank}`), ...hosts.map((host) => `host/${host}`)];
}
