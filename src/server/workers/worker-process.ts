/** A worker, as its primary sees it. */
import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Problem } from '../../errors.ts';
import type { Party, Prepared } from './agreement.ts';
import type { Taker } from './connection-line.ts';
import type { LogPipe } from './log-pipe.ts';
import {
  type CallSeen,
  deskPath,
  type FromWorker,
  PLACE_VARIABLE,
  type Place,
  type Question,
  type Ready,
  type Topic,
  type ToWorker,
} from './messages.ts';
import { OpenQuestions } from './open-questions.ts';

export interface WorkerProcessOptions {
  readonly place: Place;
  /** For the decisions that it sends. */
  readonly log: LogPipe;
  /** Whether its standard output is the standard error of the primary, whose own is the decision log. */
  readonly writesToStandardError: boolean;
}

/** What the primary is told of a worker. */
export interface WorkerObserver {
  ready(worker: WorkerProcess, ready: Ready): void;
  accepted(worker: WorkerProcess, id: number): void;
  leaving(worker: WorkerProcess): void;
  changed(topic: Topic): void;
  /** To be told to all others. */
  called(worker: WorkerProcess, call: CallSeen): void;
  asked(question: Question, worker: WorkerProcess): Promise<string>;
  /** Its process has ended, and all that it has said is heard. */
  ended(worker: WorkerProcess, end: WorkerEnd): void;
}

export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly livedMs: number;
}

/** What a worker that ends in the middle of a round has refused. */
const ENDED: readonly Problem[] = [
  { severity: 'error', message: 'a worker ended while it read the files: what was used before still counts' },
];

export class WorkerProcess implements Party, Taker {
  readonly number: number;
  readonly pid: number;
  readonly path: string;
  /** The decisions that it sends. */
  readonly log: LogPipe;
  /** Whether it can answer requests. */
  isReady = false;
  /** Whether it ends by itself. */
  isLeaving = false;
  isGone = false;
  /** How often it has said that it is there. */
  beats = 0;
  /** Why the primary has ended it. */
  killedFor: string | undefined;
  readonly #child: ChildProcess;
  readonly #observer: WorkerObserver;
  readonly #started = performance.now();
  readonly #questions = new OpenQuestions();
  #preparing: { readonly round: number; readonly done: (prepared: Prepared) => void } | undefined;
  #settling: { readonly round: number; readonly done: () => void } | undefined;

  /** Starts it: the same command with the same flags. */
  constructor({ place, log, writesToStandardError }: WorkerProcessOptions, observer: WorkerObserver) {
    const [, command = '', ...flags] = process.argv;
    this.#child = fork(command, flags, {
      env: { ...process.env, [PLACE_VARIABLE]: JSON.stringify(place) },
      // The last one is its `LOG_DESCRIPTOR`.
      stdio: ['ignore', writesToStandardError ? 2 : 1, 2, 'ipc', log.far],
    });
    log.far.destroy();
    this.log = log;
    this.number = place.number;
    this.pid = this.#child.pid ?? 0;
    this.path = deskPath(place.folder, this.pid);
    this.#observer = observer;
    this.#child.on('message', (message) => this.#heard(message as FromWorker));
    // A worker that is gone is no error of its own: `close` tells it.
    this.#child.on('error', () => {});
    this.#child.once('close', (code, signal) => {
      this.isGone = true;
      this.#preparing?.done({ problems: ENDED });
      this.#settling?.done();
      this.#questions.end();
      observer.ended(this, { code, signal, livedMs: performance.now() - this.#started });
    });
  }

  hand(id: number, socket: Socket): boolean {
    if (!this.#child.connected) {
      return false;
    }
    const message: ToWorker = { kind: 'connection', id };
    // The primary keeps it until the worker has confirmed: one that dies before has read nothing of it.
    this.#child.send(message, socket, { keepOpen: true }, () => {});
    return true;
  }

  prepare(round: number, topic: Topic): Promise<Prepared> {
    return new Promise((resolve) => {
      const done = (prepared: Prepared) => {
        this.#preparing = undefined;
        resolve(prepared);
      };
      if (!this.tell({ kind: 'prepare', round, topic })) {
        done({ problems: ENDED });
        return;
      }
      this.#preparing = { round, done };
    });
  }

  take(round: number): Promise<void> {
    return this.#settle({ kind: 'take', round });
  }

  drop(round: number, problems: readonly Problem[]): Promise<void> {
    return this.#settle({ kind: 'drop', round, problems });
  }

  /** `undefined` = it is gone, or has not answered within `withinMs`, or only with nothing. */
  async ask(question: Question, withinMs: number): Promise<string | undefined> {
    const value = await this.#questions.ask((id) => this.tell({ kind: 'ask', id, question }), withinMs);
    return value === '' ? undefined : value;
  }

  /** Returns whether there is a channel to it. */
  tell(message: ToWorker): boolean {
    return this.#child.connected && this.#child.send(message, () => {}) !== undefined;
  }

  /** At once, even if it is stopped. */
  kill(reason: string): void {
    this.killedFor ??= reason;
    this.#child.kill('SIGKILL');
  }

  #settle(message: Extract<ToWorker, { kind: 'take' | 'drop' }>): Promise<void> {
    const { round } = message;
    return new Promise((resolve) => {
      const done = () => {
        this.#settling = undefined;
        resolve();
      };
      if (this.isGone || this.#settled === round || !this.tell(message)) {
        done();
        return;
      }
      this.#settling = { round, done };
    });
  }

  /** The last round that is over for it. */
  #settled = 0;

  #heard(message: FromWorker): void {
    switch (message.kind) {
      case 'beat':
        this.beats += 1;
        return;
      case 'accepted':
        this.#observer.accepted(this, message.id);
        return;
      case 'ready':
        this.isReady = true;
        this.#observer.ready(this, message);
        return;
      case 'leaving':
        this.isLeaving = true;
        this.#observer.leaving(this);
        return;
      case 'changed':
        this.#observer.changed(message.topic);
        return;
      case 'call':
        this.#observer.called(this, message);
        return;
      case 'prepared':
      case 'refused':
        if (this.#preparing?.round === message.round) {
          this.#preparing.done(message);
        }
        return;
      case 'settled':
        this.#settled = message.round;
        if (this.#settling?.round === message.round) {
          this.#settling.done();
        }
        return;
      case 'ask':
        void this.#observer
          .asked(message.question, this)
          .then((value) => this.tell({ kind: 'answer', id: message.id, value }));
        return;
      case 'answer':
        this.#questions.answered(message.id, message.value);
    }
  }
}
