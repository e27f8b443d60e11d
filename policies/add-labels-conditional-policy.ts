import { z } from 'zod';
import {
  AdminPolicy,
  isListed,
  isMapping,
  isWorkspaceListed,
  kubernetesLabels,
  labelKubernetes,
  MutatedUserRequest,
  type Task,
  type UserRequest,
  unreadable,
} from '../src/skypilot/index.ts';

const names = z.array(z.string().min(1)).max(10_000);

const options = z.object({
  add_labels_conditional: kubernetesLabels('The labels. They replace labels of the same name in a request.'),
  add_labels_conditional_to: z
    .array(z.enum(['kubernetes', 'resources']))
    .min(1)
    .default(['kubernetes'])
    .meta({
      description:
        'Where the labels are set. kubernetes: custom_metadata, for everything that SkyPilot creates in Kubernetes and in SSH node pools. resources: labels of the resources of the task, for clusters in every cloud; each cloud has its own rules for their names.',
      expected: 'kubernetes, resources, or both with a comma between them',
    }),
  add_labels_conditional_skipped_requests: z
    .array(z.string().regex(/^[a-z][a-z_.]*$/))
    .default(['validate', 'optimize'])
    .meta({
      description: 'The requests that get no labels. Empty = all get them.',
      expected: 'a comma-separated list of names such as validate or jobs.launch',
    }),
  add_labels_conditional_side: z.enum(['both', 'server', 'client']).default('both').meta({
    description: "Whose requests get labels: those that SkyPilot's server makes, those of clients, or both.",
  }),
  add_labels_conditional_users: names.default([]).meta({
    description:
      'The users whose requests get labels, by name or id (service accounts by id); clients do not send their user. Empty = all.',
  }),
  add_labels_conditional_workspaces: names.default([]).meta({
    description: 'The workspaces whose requests get labels. Empty = all.',
  }),
});

type Options = z.infer<typeof options>;

/**
 * Adds labels to requests that meet all conditions. Also adds them where they would be overridden: in the
 * configuration of a context or a task, and in an alternative of the resources.
 */
export class AddLabelsConditionalPolicy extends AdminPolicy<Options> {
  static override readonly options = options;

  override validateAndMutate(userRequest: UserRequest): MutatedUserRequest {
    const { task, skypilotConfig } = userRequest;
    const { add_labels_conditional_to: to } = this.options;
    if (this.#isMeant(userRequest)) {
      if (to.includes('kubernetes')) {
        labelKubernetes(userRequest, this.options.add_labels_conditional, ['kubernetes', 'ssh']);
      }
      if (to.includes('resources')) {
        this.#labelResources(task);
      }
    }
    return new MutatedUserRequest(task, skypilotConfig);
  }

  #isMeant({ requestName, atClientSide, user, skypilotConfig }: UserRequest): boolean {
    const {
      add_labels_conditional_skipped_requests: skipped,
      add_labels_conditional_side: side,
      add_labels_conditional_users: users,
      add_labels_conditional_workspaces: workspaces,
    } = this.options;
    return (
      !skipped.includes(requestName) &&
      (side === 'both' || (side === 'client') === atClientSide) &&
      (users.length === 0 || isListed(user, users)) &&
      (workspaces.length === 0 || isWorkspaceListed(skypilotConfig, workspaces))
    );
  }

  /** SkyPilot merges the labels of an alternative with those of the resources. */
  #labelResources(task: Task): void {
    const resources = task.resources ?? {};
    if (!isMapping(resources)) {
      throw unreadable('resources', 'a mapping');
    }
    const labelled: Record<string, unknown> = { ...resources, labels: this.#labelsWith(resources.labels) };
    for (const name of ['any_of', 'ordered']) {
      const alternatives = resources[name] ?? [];
      if (!Array.isArray(alternatives) || !alternatives.every(isMapping)) {
        throw unreadable(`resources.${name}`, 'a list of mappings');
      }
      if (alternatives.length > 0) {
        labelled[name] = alternatives.map((own) =>
          own.labels === undefined || own.labels === null
            ? own
            : { ...own, labels: this.#labelsWith(own.labels) },
        );
      }
    }
    task.resources = labelled;
  }

  #labelsWith(labels: unknown): Readonly<Record<string, unknown>> {
    if (!isMapping(labels ?? {})) {
      throw unreadable('resources.labels', 'a mapping');
    }
    return { ...(labels as object), ...this.options.add_labels_conditional };
  }
}
