/** The rules in words. */
import type { Rule } from './readers.ts';

export const RULES: Readonly<Record<Rule, string>> = {
  region: 'the value of the context or region, else the general one; in kubernetes, mappings are merged',
  workspace: 'the value in the workspace, else the general one; in each, that of the context first',
  spellings: 'the first that is set, in the workspace first; in each, that of the context first',
  'task over all': 'the general value, that of the context, and that of the task, merged in this order',
  'task first': 'the value of the task, else as configured',
  levels:
    'the general value, that of the cluster or context, the partition, and the task, merged in this order',
  'workspace section': 'the section of the workspace, merged over the general one',
  'by region': 'the general value; of a mapping, the member with the name of the region',
  'default region': 'the value of the region, else that of the region named default',
  general: 'one value for all contexts and regions',
};
