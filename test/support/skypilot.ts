/** Requests of SkyPilot, and policies to ask about them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { withinDeadline } from '../../src/base/deadline.ts';
import { YamlDocument } from '../../src/base/yaml/document.ts';
import type { Mapping } from '../../src/base/yaml/tree.ts';
import { requireConfiguration } from '../../src/enforcement/configuration.ts';
import type { EnforcementServices } from '../../src/enforcement/services.ts';
import type { Level, Source } from '../../src/skypilot/config/config-schema.ts';
import { PolicyChain, type Review } from '../../src/skypilot/policies/policy-chain.ts';
import { decodeRequest, type ReceivedRequest } from '../../src/skypilot/request/wire.ts';
import { skypilotSection } from '../../src/skypilot/section.ts';
import { valuesOnly } from './files.ts';
import { filterFolder, type WhenDone } from './filter-folder.ts';
import { type RecordingLogger, recordingLogger } from './logger.ts';

export const ALLOWED_AS_IT_CAME = {
  ...{ allowed: true, changed: false, failed: false },
  ...{ message: null, policy: null },
};
export const FAILED = 'The request could not be checked. Please try again later, or ask the operator.';

/** The bytes of a file in test/fixtures/skypilot-wire, as they go over the wire. */
export function wireBody(name: string): string {
  return readFileSync(new URL(`../fixtures/skypilot-wire/${name}.body`, import.meta.url), 'utf8');
}

/** The object inside of a body. */
export function inside(body: string): Record<string, unknown> {
  return JSON.parse(JSON.parse(body) as string) as Record<string, unknown>;
}

/** The object of a launch of one line, with other members; `undefined` = the member is missing. */
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

/** As it goes over the wire. */
export function body(members: object = {}): string {
  return JSON.stringify(JSON.stringify(envelope(members)));
}

export function received(members: object = {}): ReceivedRequest {
  return decodeRequest(envelope(members));
}

/** The text of a policy's file: the class `name`, with this body of `validateAndMutate`. */
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

/** A file each for these policies, and how they are named in `admin_policies`: in the order of the object. */
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

export interface RunningChain {
  readonly chain: PolicyChain;
  readonly logger: RecordingLogger;
  /** Asks in so many seconds, default 10. */
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
 * The chain of what stands in `[skypilot]`; unless it says otherwise without threads, so that policies see the test, and
 * without validation, so that tasks may be made up.
 */
export async function chainOn(
  skypilot: Readonly<Record<string, unknown>>,
  services: EnforcementServices = {},
  whenDone: WhenDone = onTestFinished,
): Promise<RunningChain> {
  const logger = recordingLogger();
  const configuration = await requireConfiguration(
    valuesOnly({ skypilot: { isolation: 'none', config_validation: 'ignore', ...skypilot } }),
    [skypilotSection],
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

/** A source of a configuration, as a file of the name of its level. */
export function configSource(level: Level, yaml: string): Source {
  const document = YamlDocument.parse(yaml);
  return {
    level,
    tree: (document.value ?? {}) as Mapping,
    originOf: (path) => ({ kind: 'file', file: level, line: document.lineOf(path) }),
  };
}
