/** `config_validation`: compares tasks and configurations with SkyPilot's schema, also after each policy. */
import { formatProblem, type Problem } from '../../base/errors.ts';
import type { Mapping } from '../../base/yaml/tree.ts';
import type { SkypilotOptions } from '../options.ts';
import type { ReceivedRequest } from '../request/wire.ts';
import type { State } from '../review.ts';
import type { OriginOf } from '../schema/validate.ts';

/** Name of the validation in place of a policy: it rejects like one. */
export const VALIDATION = 'config_validation';

/** Further problems are only counted. */
const MAX_SHOWN = 5;

/** Maximum number of sentences remembered as logged; then all are forgotten and logged again. */
const MAX_LOGGED = 1000;

type Mode = SkypilotOptions['config_validation'];
type Validate = (tree: Mapping, originOf: OriginOf) => readonly Problem[];

/** Where a request was written, if it was read from files. */
export interface Places {
  readonly task: OriginOf;
  /** The task as written, before SkyPilot's own form: `YamlDocument.typed`. */
  readonly writtenTask: Mapping;
  readonly skypilotConfig: OriginOf;
}

interface Schema {
  readonly validateTask: Validate;
  readonly validateConfig: Validate;
  readonly version: string;
}

/** A mismatch, in a sentence without secrets. */
export interface Mismatch {
  readonly message: string;
  /** `false` with `warning`: it is only reported. */
  readonly isEnforced: boolean;
  /** Whether the sentence was not logged before. */
  readonly isNew: boolean;
}

export class ConfigValidation {
  readonly #mode: Mode;
  readonly #schema: Schema | undefined;
  /** By tree: each policy gets the tree that the previous one returned. */
  readonly #known = new WeakMap<object, readonly Problem[]>();
  readonly #logged = new Set<string>();

  private constructor(mode: Mode, schema?: Schema) {
    this.#mode = mode;
    this.#schema = schema;
  }

  /** Reads the schema, unless it is not needed. */
  static async of({ config_validation: mode, admin_policies }: SkypilotOptions): Promise<ConfigValidation> {
    if (mode === 'ignore' || admin_policies.length === 0) {
      return new ConfigValidation('ignore');
    }
    const [{ validateConfig, validateTask }, { SCHEMA_VERSION }] = await Promise.all([
      import('../schema/validate.ts'),
      import('../schema/json-schema.ts'),
    ]);
    const version = `SkyPilot ${SCHEMA_VERSION.skypilot}`;
    return new ConfigValidation(mode, { validateConfig, validateTask, version });
  }

  /** The mismatch of a request; `undefined` = none. */
  ofRequest(request: ReceivedRequest, state: State, places?: Places): Mismatch | undefined {
    return this.#mismatch('the request', this.#problemsOf(state, places, request));
  }

  /** The mismatch that a policy caused, without earlier mistakes of the request. */
  ofAnswer(policy: string, before: State, after: State): Mismatch | undefined {
    const known = new Set(this.#problemsOf(before).map(({ message }) => message));
    const problems = this.#problemsOf(after).filter((problem) => !known.has(problem.message));
    return this.#mismatch(`the answer of ${policy}`, problems);
  }

  #mismatch(what: string, problems: readonly Problem[]): Mismatch | undefined {
    if (problems.length === 0) {
      return undefined;
    }
    const shown = problems.slice(0, MAX_SHOWN).map(formatProblem);
    const more = problems.length - shown.length;
    const list = [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
    const message = `${what} is not valid for ${this.#schema?.version}: ${list}`;
    const isNew = !this.#logged.has(message);
    if (isNew) {
      if (this.#logged.size >= MAX_LOGGED) {
        this.#logged.clear();
      }
      this.#logged.add(message);
    }
    return { message, isEnforced: this.#mode === 'error', isNew };
  }

  /** `request`: the source of the state, if it is unchanged. */
  #problemsOf(
    { task, skypilotConfig }: State,
    places?: Places,
    request?: ReceivedRequest,
  ): readonly Problem[] {
    if (this.#schema === undefined) {
      return [];
    }
    const { validateTask, validateConfig } = this.#schema;
    const typedTask = () => places?.writtenTask ?? request?.task.typed ?? task;
    const typedConfig = () => request?.skypilotConfig.typed ?? skypilotConfig;
    return [
      ...this.#checked('task', task, typedTask, validateTask, places?.task),
      ...this.#checked('configuration', skypilotConfig, typedConfig, validateConfig, places?.skypilotConfig),
    ];
  }

  #checked(
    name: string,
    tree: Mapping,
    typed: () => unknown,
    validate: Validate,
    originOf?: OriginOf,
  ): readonly Problem[] {
    const known = this.#known.get(tree);
    if (known !== undefined) {
      return known;
    }
    const problems = validate(typed() as Mapping, originOf ?? (() => undefined)).map(
      (problem): Problem => ({ ...problem, section: undefined, option: problem.origin ? undefined : name }),
    );
    this.#known.set(tree, problems);
    return problems;
  }
}
