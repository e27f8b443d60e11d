/** Requests of SkyPilot, and policies for them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, vi } from 'vitest';
import { withinDeadline } from '../../src/base/deadline.ts';
import type { Problem } from '../../src/base/errors.ts';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import type { Mapping } from '../../src/base/yaml/tree.ts';
import {
  type Configuration,
  readConfiguration,
  withoutMistakes,
} from '../../src/enforcement/configuration.ts';
import type { EnforcementServices } from '../../src/enforcement/services.ts';
import type { Level, Source } from '../../src/skypilot/config/config-schema.ts';
import { PolicyChain, type Review } from '../../src/skypilot/policies/policy-chain.ts';
import { decodeRequest, type ReceivedRequest } from '../../src/skypilot/request/wire.ts';
import { skypilotSection } from '../../src/skypilot/section.ts';
import { valuesOnly } from './files.ts';
import { filterFolder, type WhenDone } from './filter-folder.ts';
import { type RecordingLogger, recordingLogger } from './logger.ts';

export const ALLOWED_AS_IT_CAME = {
  allowed: true,
  changed: false,
  failed: false,
  message: null,
  policy: null,
};
export const FAILED = 'The request could not be checked. Please try again later, or ask the operator.';

/** The bytes of a file in test/fixtures/skypilot-wire, as on the wire. */
export function wireBody(name: string): string {
  return readFileSync(new URL(`../fixtures/skypilot-wire/${name}.body`, import.meta.url), 'utf8');
}

/** The object inside a body. */
export function inside(body: string): Record<string, unknown> {
  return JSON.parse(JSON.parse(body) as string) as Record<string, unknown>;
}

/** The object of a one-line launch with other members; `undefined` = the member is missing. */
export function envelope(members: object = {}): Record<string, unknown> {
  return {
    task: 'name: tiny\nrun: hostname\n',
    skypilot_config: '{}\n',
    request_name: 'launch',
    request_options: { cluster_name: 'one', idle_minutes_to_autostop: null, down: false, dryrun: false },
    at_client_side: false,
    user: 'id: 0a1b2c3d\nname: lin\n',
    client_api_version: 57,
    client_version: '0.13.0',
    ...members,
  };
}

/** The same as on the wire. */
export function body(members: object = {}): string {
  return JSON.stringify(JSON.stringify(envelope(members)));
}

export function received(members: object = {}): ReceivedRequest {
  return decodeRequest(envelope(members));
}

/** The text of a policy file: the class `name` with this body of `validateAndMutate`. */
export function policySource(name: string, text = '', { extra = '', imports = '' } = {}): string {
  return `import { AdminPolicy, Config, MutatedUserRequest, PolicyRejected } from 'blazar-enforcement/skypilot';
${imports}
export class ${name} extends AdminPolicy {
  ${extra}
  validateAndMutate(request, call) {
    const { task, skypilotConfig: config } = request;
    ${text}
    return new MutatedUserRequest(task, config);
  }
}
void [Config, PolicyRejected];
`;
}

/** A file for each of these policies, and their `admin_policies` specifiers, in the order of the object. */
export function policyFiles(
  policies: Readonly<Record<string, string>>,
  whenDone?: WhenDone,
): {
  folder: string;
  specifiers: string[];
} {
  const names = Object.keys(policies);
  const folder = filterFolder(
    Object.fromEntries(names.map((name) => [`${name}.js`, policySource(name, policies[name])])),
    whenDone,
  );
  return { folder, specifiers: names.map((name) => `${join(folder, `${name}.js`)}#${name}`) };
}

/** What a policy can see of the test, under the name `probe`. */
export function probe<Value>(value: Value): Value {
  vi.stubGlobal('probe', value);
  onTestFinished(() => void vi.unstubAllGlobals());
  return value;
}

/** The configuration of `[skypilot]`. */
export function readSkypilot(skypilot: Readonly<Record<string, unknown>>): Promise<Configuration> {
  return readConfiguration(valuesOnly({ skypilot }), [skypilotSection]);
}

/** What is wrong with these options of `[skypilot]`. */
export async function skypilotProblems(skypilot: Readonly<Record<string, unknown>>): Promise<Problem[]> {
  const { problems } = await readSkypilot(skypilot);
  return problems.filter(({ section }) => section === 'skypilot');
}

export interface RunningChain {
  readonly chain: PolicyChain;
  readonly logger: RecordingLogger;
  /** `seconds`: the deadline; default 10. */
  review(request: ReceivedRequest, seconds?: number): Promise<Review>;
}

/** The chain of these policies: name → body of `validateAndMutate`. */
export function chainOf(
  policies: Readonly<Record<string, string>>,
  whenDone?: WhenDone,
): Promise<RunningChain> {
  return chainOn({ admin_policies: policyFiles(policies, whenDone).specifiers }, {}, whenDone);
}

/**
 * The chain of `[skypilot]`; by default without threads, so that policies can access the test, and without
 * validation, so that tasks may be invented.
 */
export async function chainOn(
  skypilot: Readonly<Record<string, unknown>>,
  services: EnforcementServices = {},
  whenDone: WhenDone = onTestFinished,
): Promise<RunningChain> {
  const logger = recordingLogger();
  const configuration = withoutMistakes(
    await readSkypilot({ isolation: 'none', config_validation: 'ignore', ...skypilot }),
  );
  const chain = await PolicyChain.fromConfiguration(configuration, { logger, ...services });
  whenDone(() => chain.close());
  return {
    chain,
    logger,
    review: (request, seconds = 10) =>
      withinDeadline(seconds, (deadline) => chain.review(request, { deadline, requestId: 'req-1' })),
  };
}

/** A configuration source, as a file named like its level. */
export function configSource(level: Level, yaml: string): Source {
  const document = YamlDocument.parse(yaml);
  return {
    level,
    tree: (document.value ?? {}) as Mapping,
    originOf: (path) => ({ kind: 'file', file: level, line: document.lineOf(path) }),
  };
}
