/** SkyPilot's rules for finding a value. Source: `sky/skypilot_config.py`, `sky/utils/config_utils.py`. */

import { isMapping } from '../../../base/yaml/tree.ts';
import { generalRules } from '../../../config/merge.ts';
import { skypilotRules } from '../config-schema.ts';
import { type Reader, regionMember } from './readers.ts';
import { combined, isGiven, NOTHING, over, partOf, placedAt, type Traced, updated } from './traced.ts';

/** The rules of `pod_config`. SkyPilot applies them to any mapping of a context. */
const podRules = skypilotRules.member('kubernetes').member('pod_config');

type Key = readonly string[];

/** A place where a value is looked up. */
export interface Candidate<Source> {
  /** Keys of a task are within its `config`. */
  readonly where: 'task' | 'configuration';
  readonly key: Key;
  readonly found: Traced<Source>;
}

export interface Reading<Source> {
  readonly config: Traced<Source>;
  /** The `config` of the task, with `--config`; `NOTHING` without one. */
  readonly task: Traced<Source>;
  /** Its configuration is `workspaces.<name>` in `config`. */
  readonly workspace: string;
  /** The context, region or cluster. */
  readonly region: string | undefined;
  /** A partition of Slurm. */
  readonly zone: string | undefined;
}

interface Resolution<Source> {
  readonly result: Traced<Source>;
  /** The highest precedence first. */
  readonly candidates: readonly Candidate<Source>[];
}

/** The value of a key, by the rule of its reader. @throws MergeError if values cannot be merged */
export function resolve<Source>(reading: Reading<Source>, key: Key, reader: Reader): Resolution<Source> {
  const lookup = new Lookup(reading, key, reader);
  const result = lookup.byRule();
  return { result, candidates: lookup.candidates };
}

/** A part of the configuration that has the same sections: all of it, or a workspace. */
interface Scope<Source> {
  readonly at: Key;
  readonly content: Traced<Source>;
}

class Lookup<Source> {
  readonly candidates: Candidate<Source>[] = [];
  readonly #reading: Reading<Source>;
  readonly #key: Key;
  readonly #cloud: string;
  readonly #reader: Reader;
  readonly #general: Scope<Source>;
  readonly #workspace: Scope<Source> | undefined;

  constructor(reading: Reading<Source>, key: Key, reader: Reader) {
    this.#reading = reading;
    this.#key = key;
    this.#cloud = key[0] ?? '';
    this.#reader = reader;
    this.#general = { at: [], content: reading.config };
    const at = ['workspaces', reading.workspace];
    const content = partOf(reading.config, at);
    this.#workspace = isMapping(content.value) ? { at, content } : undefined;
  }

  byRule(): Traced<Source> {
    const { fixedRegion } = this.#reader;
    const region = fixedRegion ?? this.#region();
    switch (this.#reader.rule) {
      case 'region':
        return this.#inScope(this.#general, this.#task(), region);
      case 'workspace':
        return this.#inEachScope((scope) => this.#inScope(scope, this.#task(), region));
      case 'spellings':
        return this.#inEachScope((scope) => this.#bySpelling(scope, region));
      case 'task over all':
        return this.#taskOverAll(region);
      case 'task first':
        return this.#first(this.#addTask(this.#task(), this.#key), () =>
          this.#inScope(this.#general, NOTHING, region),
        );
      case 'levels':
        return this.#levels(region);
      case 'workspace section':
        return this.#workspaceSection();
      case 'by region':
        return this.#byRegion();
      case 'default region':
        return this.#first(this.#inScope(this.#general, this.#task(), region), () =>
          this.#inScope(this.#general, this.#task(), 'default'),
        );
      case 'general':
        return this.#inScope(this.#general, this.#task(), undefined);
    }
  }

  /** The name by which SkyPilot looks up the context or region. */
  #region(): string | undefined {
    const { region } = this.#reading;
    if (this.#cloud !== 'ssh' || region === undefined) {
      return region;
    }
    return poolContext(region, this.#reader.pool === true);
  }

  #task(): Traced<Source> {
    return this.#reader.task === true ? this.#reading.task : NOTHING;
  }

  #add(where: Candidate<Source>['where'], key: Key, found: Traced<Source>): Traced<Source> {
    this.candidates.push({ where, key, found });
    return found;
  }

  #addTask(task: Traced<Source>, key: Key): Traced<Source> {
    return task.value === undefined ? NOTHING : this.#add('task', key, partOf(task, key));
  }

  /** The first value that is set. It beats the other. */
  #first(value: Traced<Source>, next: () => Traced<Source>): Traced<Source> {
    const other = next();
    return isGiven(value) ? over(value, other) : other;
  }

  /** The value of a scope merged with the task, for a region. */
  #inScope(
    { at, content }: Scope<Source>,
    task: Traced<Source>,
    region: string | undefined,
    where: Candidate<Source>['where'] = 'configuration',
  ): Traced<Source> {
    const key = this.#key;
    const whole = combined(content, task, skypilotRules);
    const inRegion = regionKey(key, region);
    const own = inRegion === undefined ? NOTHING : partOf(whole, inRegion);
    if (inRegion !== undefined) {
      this.#add(where, [...at, ...inRegion], own);
    }
    this.#addTask(task, key);
    this.#add(where, [...at, ...key], partOf(content, key));
    return this.#merged(partOf(whole, key), own);
  }

  #merged(general: Traced<Source>, own: Traced<Source>): Traced<Source> {
    if (isMapping(general.value) && isMapping(own.value)) {
      if (this.#cloud === 'kubernetes') {
        return combined(general, own, podRules);
      }
      if (this.#reader.mappings === 'members') {
        return updated(general, own);
      }
    }
    return isGiven(own) ? over(own, general) : general;
  }

  #inEachScope(find: (scope: Scope<Source>) => Traced<Source>): Traced<Source> {
    const general = () => find(this.#general);
    return this.#workspace === undefined ? general() : this.#first(find(this.#workspace), general);
  }

  /** Each spelling for the region, then each for all regions. */
  #bySpelling({ at, content }: Scope<Source>, region: string | undefined): Traced<Source> {
    const whole = combined(content, this.#task(), skypilotRules);
    const found: Traced<Source>[] = [];
    const keys = (this.#reader.spellings ?? []).map((spelling) => [this.#cloud, ...spelling]);
    for (const key of keys) {
      const inRegion = regionKey(key, region);
      if (inRegion !== undefined) {
        found.push(this.#add('configuration', [...at, ...inRegion], partOf(whole, inRegion)));
      }
    }
    for (const key of keys) {
      this.#addTask(this.#task(), key);
      this.#add('configuration', [...at, ...key], partOf(content, key));
      found.push(partOf(whole, key));
    }
    // Here `null` means not set: SkyPilot falls back to its own default.
    return found.filter(isGiven).reduceRight<Traced<Source>>((below, one) => over(one, below), NOTHING);
  }

  #taskOverAll(region: string | undefined): Traced<Source> {
    const task = this.#inScope({ at: [], content: this.#reading.task }, NOTHING, region, 'task');
    const configured = this.#inScope(this.#general, NOTHING, region);
    return configured.value === undefined ? task : combined(configured, task, podRules);
  }

  #levels(region: string | undefined): Traced<Source> {
    const { config, zone } = this.#reading;
    const [cloud = '', ...rest] = this.#key;
    const inRegion = regionKey([cloud], region);
    const inZone =
      inRegion === undefined || zone === undefined ? undefined : [...inRegion, 'partition_configs', zone];
    this.#addTask(this.#task(), this.#key);
    for (const level of [inZone, inRegion, [cloud]]) {
      if (level !== undefined) {
        this.#add('configuration', [...level, ...rest], partOf(config, [...level, ...rest]));
      }
    }
    return this.candidates
      .map(({ found }) => found)
      .filter(isGiven)
      .reduceRight<Traced<Source>>(
        (below, one) => (rest[0] === 'pricing' ? combined(below, one, generalRules) : updated(below, one)),
        NOTHING,
      );
  }

  /** Merges only the cloud's section. `null` in the workspace hides the general value from this merge. */
  #workspaceSection(): Traced<Source> {
    const key = this.#key;
    const own = this.#workspace === undefined ? NOTHING : partOf(this.#workspace.content, [this.#cloud]);
    if (this.#workspace !== undefined) {
      this.#add('configuration', [...this.#workspace.at, ...key], partOf(this.#workspace.content, key));
    }
    const general = this.#add('configuration', key, partOf(this.#reading.config, key));
    const merged = isMapping(own.value)
      ? combined(this.#reading.config, placedAt(own, [this.#cloud]), skypilotRules)
      : this.#reading.config;
    const value = partOf(merged, key);
    const isEmptied = key.at(-1) === 'capabilities' && Array.isArray(value.value) && value.value.length === 0;
    return isGiven(value) && !isEmptied ? value : hasFallback(key) ? general : value;
  }

  #byRegion(): Traced<Source> {
    const value = this.#inScope(this.#general, NOTHING, undefined);
    const { region } = this.#reading;
    return isMapping(value.value) && region !== undefined ? partOf(value, [region]) : value;
  }
}

/** Keys that SkyPilot reads from the general configuration if the merged section lacks them. */
function hasFallback([cloud, name]: Key): boolean {
  return (
    name === 'capabilities' ||
    name === 'allowed_contexts' ||
    name === 'allowed_node_pools' ||
    name === 'allowed_clusters' ||
    (cloud === 'nebius' && (name === 'domain' || name === 'tenant_id'))
  );
}

/** `kubernetes.context_configs.<region>.…`; `undefined` = no region, or a cloud without regional values. */
function regionKey([cloud = '', ...rest]: Key, region: string | undefined): Key | undefined {
  const holder = regionMember(cloud);
  return region === undefined || holder === undefined ? undefined : [cloud, holder, region, ...rest];
}

/** The bare name of an SSH node pool, or the name of its context. */
export function poolContext(name: string, isBare: boolean): string {
  const bare = name.startsWith('ssh-') ? name.slice('ssh-'.length) : name;
  return isBare ? bare : `ssh-${bare}`;
}
