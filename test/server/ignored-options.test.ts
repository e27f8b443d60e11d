import { expect, it } from 'vitest';
import { configFile } from '../config/helpers.ts';
import { confFile } from '../support/files.ts';
import { temporaryFolder } from '../support/filter-folder.ts';
import { metric } from '../support/metric.ts';
import { runServiceOn } from '../support/running-service.ts';

it("options of a project's file that only the server's may set are counted", async () => {
  const projectFolder = temporaryFolder();
  configFile(
    '[enforcement]\nexempt_projects = mine\n[service]\ntokens = mine\n',
    '.blazar-enforcement.conf',
    projectFolder,
  );
  const configFiles = [confFile('[service]\nport = 0\n')];
  const { request } = await runServiceOn({ environment: {}, configFiles, projectFolder });
  const { text } = await request('/metrics');
  expect(metric(text, 'blazar_enforcement_configuration_ignored_options')).toBe(2);
});
