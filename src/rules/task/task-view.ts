/** Tasks of SkyPilot as rules see them: one way of writing everything, so that no other spelling gets past a rule. */
import { JsonMap } from '../cel/json.ts';
import { Timestamp } from '../cel/values.ts';

/** One way in which a task may run. `undefined` = it may be any. */
export interface TaskResources {
  /** Lower case, without aliases. */
  readonly cloud: string | undefined;
  readonly region: string | undefined;
  readonly zone: string | undefined;
  readonly instanceType: string | undefined;
  /** At most one: others are ways of their own. Names in upper case, of TPUs in lower case. */
  readonly accelerators: ReadonlyMap<string, number>;
  /** Whether an accelerator may be the named one. */
  readonly mayBe: (name: string) => boolean;
  /** `undefined` = not given, or in a form that says no number. */
  readonly cpus: number | undefined;
  /** In gigabytes. */
  readonly memory: number | undefined;
  readonly useSpot: boolean;
  /** Containers as `docker:name`. */
  readonly images: readonly string[];
  readonly ports: readonly string[];
  /** In gigabytes. */
  readonly diskSize: number | undefined;
  /** In minutes; -1 = it is off. */
  readonly autostop: number | undefined;
  readonly labels: object;
  readonly attributes: object;
}

export interface TaskRequestParts {
  readonly requestName: string;
  readonly clusterName: string | undefined;
  readonly atClientSide: boolean;
  readonly dryrun: boolean;
  readonly taskName: string | undefined;
  readonly numNodes: bigint;
  /** The names of environment variables; not of secrets. */
  readonly envs: readonly string[];
  /** Every way in which it may run. */
  readonly resources: readonly TaskResources[];
  readonly user: { readonly id: string; readonly name: string } | undefined;
  readonly workspace: string;
  readonly config: object;
  /** The configurations that the task itself brings, in every way in which it may run. */
  readonly overrides: readonly object[];
  readonly now: Date;
}

export class TaskRequestInfo {
  readonly parts: TaskRequestParts;

  constructor(parts: TaskRequestParts) {
    this.parts = parts;
  }
}

export class TaskUserView {
  readonly id: string | undefined;
  readonly name: string | undefined;

  constructor(user: TaskRequestParts['user']) {
    this.id = user?.id;
    this.name = user?.name;
  }
}

export class ResourcesView {
  readonly parts: TaskResources;

  constructor(parts: TaskResources) {
    this.parts = parts;
  }
}

export class TaskView {
  readonly parts: TaskRequestParts;
  readonly resources: readonly ResourcesView[];

  constructor(parts: TaskRequestParts) {
    this.parts = parts;
    this.resources = parts.resources.map((one) => new ResourcesView(one));
  }
}

/** The variables of rules for tasks. */
export class TaskActivation {
  readonly now: Timestamp;
  readonly request: TaskRequestInfo;
  readonly user: TaskUserView;
  readonly workspace: string;
  readonly task: TaskView;
  readonly config: JsonMap;
  readonly overrides: readonly JsonMap[];

  constructor(parts: TaskRequestParts) {
    this.now = new Timestamp(BigInt(parts.now.getTime()) * 1_000_000n);
    this.request = new TaskRequestInfo(parts);
    this.user = new TaskUserView(parts.user);
    this.workspace = parts.workspace;
    this.task = new TaskView(parts);
    this.config = new JsonMap(parts.config);
    this.overrides = parts.overrides.map((one) => new JsonMap(one));
  }

  get resources(): readonly ResourcesView[] {
    return this.task.resources;
  }
}
