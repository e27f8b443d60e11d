/** A worker's side of the channel to its primary. */
import type { Socket } from 'node:net';
import { ConfigurationError, errorText, type Problem } from '../../errors.ts';
import type { Logger } from '../../logger.ts';
import { WorkerBreakers } from './breakers.ts';
import { FollowedByOne } from './followed-by-one.ts';
import {
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
import { ReadFiles } from './read-files.ts';

/** How often a worker says that it still has turns to give, in milliseconds. */
const BEAT_MS = 500;

/** What a worker does when its primary says so. */
export interface WorkerParts {
  /** Takes a connection. Nothing was read from it. */
  connection(socket: Socket): void;
  /** Prepares it, calls `agree` when it has, and uses it when that resolves. Throws what is wrong with it. */
  prepare(topic: Topic): Promise<void>;
  /** From now on it serves people, and does what is to be done once. */
  becomeDesk(): void;
  /** What `question` asks for, of this worker alone. */
  answer(question: Question): Promise<string>;
}

interface Round {
  readonly number: number;
  verdict: ((problems: readonly Problem[] | undefined) => void) | undefined;
}

export class WorkerLink {
  readonly place: Place;
  /** Those of the configuration. */
  readonly files = new ReadFiles();
  readonly breakers: WorkerBreakers;
  /** What one worker follows for all. */
  readonly followed = new FollowedByOne(this);
  readonly #process: NodeJS.Process;
  readonly #questions = new OpenQuestions();
  #stop = () => {};
  /** Resolves when the worker is to end: the service stops, or the primary is gone. */
  readonly stopped = new Promise<void>((stop) => {
    this.#stop = stop;
  });
  #parts: WorkerParts | undefined;
  #round: Round | undefined;
  #desk: { readonly number: number; readonly path: string } | undefined;

  /** Of a process that a primary has started; `undefined` = none has. */
  static ofProcess(process: NodeJS.Process): WorkerLink | undefined {
    const place = process.env[PLACE_VARIABLE];
    // Nobody who starts this process by hand, and no process that it starts, is a worker of that primary.
    delete process.env[PLACE_VARIABLE];
    return place === undefined || process.send === undefined
      ? undefined
      : new WorkerLink(JSON.parse(place) as Place, process);
  }

  private constructor(place: Place, process: NodeJS.Process) {
    this.place = place;
    this.#process = process;
    this.breakers = new WorkerBreakers(
      (key, event) => this.#send({ kind: 'call', key, event }),
      place.failed,
    );
    setInterval(() => this.#send({ kind: 'beat' }), BEAT_MS).unref();
    process.on('message', (message, socket) =>
      this.#heard(message as ToWorker, socket as Socket | undefined),
    );
    process.once('disconnect', () => {
      this.#questions.end();
      if (this.#parts === undefined) {
        process.exit(1);
      }
      // The primary is gone. Without it nobody would stop this process.
      this.#stop();
    });
  }

  /** Whether this worker serves people, and does what is to be done once. */
  get isDesk(): boolean {
    return this.#desk?.number === this.place.number;
  }

  /** Whether this worker tells what all have to tell: at the first start, nobody serves people yet. */
  get #tells(): boolean {
    const { number, generation } = this.place;
    return this.#desk === undefined ? number === 1 && generation === 1 : this.isDesk;
  }

  /** Where requests of people go; `undefined` = nobody can take them now. */
  get deskPath(): string | undefined {
    return this.#desk?.path;
  }

  /** Where this worker takes requests of people that others have got. */
  get ownPath(): string {
    return deskPath(this.place.folder, this.#process.pid);
  }

  /** Requests can be answered. */
  start(parts: WorkerParts, ready: Omit<Ready, 'generation'>): void {
    this.#parts = parts;
    this.#send({ kind: 'ready', generation: this.place.generation, ...ready });
  }

  /** No further connections, please: the worker ends when it has finished what is under way. */
  leave(): void {
    this.#send({ kind: 'leaving' });
  }

  /** It cannot start: without the channel, the process ends by itself. */
  close(): void {
    this.#process.removeAllListeners('disconnect').disconnect();
  }

  /** A file of the configuration, or one with credentials, has changed. */
  changed(topic: Topic): void {
    if (this.isDesk) {
      this.#send({ kind: 'changed', topic });
    }
  }

  /** A logger for what all workers would tell in the same words: only one of them does. */
  telling(logger: Logger): Logger {
    const nobody = () => {};
    const when =
      (method: keyof Logger): Logger['info'] =>
      (...line: [string]) =>
        (this.#tells ? logger[method].bind(logger) : nobody)(...line);
    return { debug: when('debug'), info: when('info'), warn: when('warn'), error: when('error') };
  }

  /** Waits until all workers have prepared the same. @throws ConfigurationError if one of them refuses it */
  async agree(digest: string): Promise<void> {
    const round = this.#round;
    if (round === undefined) {
      throw new Error('nobody has asked for anything');
    }
    const verdict = new Promise<readonly Problem[] | undefined>((given) => {
      round.verdict = given;
    });
    this.#send({ kind: 'prepared', round: round.number, digest });
    const problems = await verdict;
    if (problems !== undefined) {
      throw new ConfigurationError(problems);
    }
  }

  /** What all workers together say. Rejects when the primary is gone. */
  async ask(question: Question): Promise<string> {
    const value = await this.#questions.ask((id) => this.#send({ kind: 'ask', id, question }));
    if (value === undefined) {
      throw new Error('the primary is gone');
    }
    return value;
  }

  #heard(message: ToWorker, socket: Socket | undefined): void {
    switch (message.kind) {
      case 'connection':
        // Before anything is read: if this process ends before it has said so, another one can have the connection.
        this.#send({ kind: 'accepted', id: message.id });
        if (socket !== undefined) {
          this.#parts?.connection(socket);
        }
        return;
      case 'prepare':
        void this.#prepare(message.round, message.topic);
        return;
      case 'take':
        this.#verdict(message.round, undefined);
        return;
      case 'drop':
        this.#verdict(message.round, message.problems);
        return;
      case 'desk': {
        const was = this.isDesk;
        this.#desk = message;
        if (this.isDesk && !was) {
          this.followed.lead();
          this.#parts?.becomeDesk();
        }
        return;
      }
      case 'ask':
        void this.#answer(message.id, message.question);
        return;
      case 'answer':
        this.#questions.answered(message.id, message.value);
        return;
      case 'call':
        this.breakers.heard(message.key, message.event);
        return;
      case 'stop':
        this.#stop();
    }
  }

  async #prepare(number: number, topic: Topic): Promise<void> {
    const round: Round = { number, verdict: undefined };
    this.#round = round;
    try {
      await this.#parts?.prepare(topic);
    } catch (thrown) {
      if (round.verdict === undefined) {
        const problems =
          thrown instanceof ConfigurationError
            ? thrown.problems
            : [{ severity: 'error' as const, message: errorText(thrown) }];
        this.#send({ kind: 'refused', round: number, problems });
      }
    }
    if (this.#round === round) {
      this.#round = undefined;
    }
    this.#send({ kind: 'settled', round: number });
  }

  #verdict(round: number, problems: readonly Problem[] | undefined): void {
    if (this.#round?.number === round) {
      this.#round.verdict?.(problems);
    }
  }

  async #answer(id: number, question: Question): Promise<void> {
    const value = await this.#parts?.answer(question).catch(() => '');
    this.#send({ kind: 'answer', id, value: value ?? '' });
  }

  /** Whatever is said to a primary that is gone is lost. Returns whether there is a channel to it. */
  #send(message: FromWorker): boolean {
    const { connected } = this.#process;
    if (connected) {
      this.#process.send?.(message, undefined, undefined, () => {});
    }
    return connected;
  }
}
