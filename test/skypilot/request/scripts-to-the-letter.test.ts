/** What PyYAML has written, and read: recorded, so that every change is held against it without a Python. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { YamlDocument } from '../../../src/base/yaml/document.ts';
import { corpus } from '../../base/yaml/scripts.ts';
import { runProgramInProcess } from '../../support/command-in-process.ts';
import { body, chainOf, inside, policyFiles, received } from '../../support/skypilot.ts';

const SCRIPT = "set -e\n \necho one\t\n  \n  # two: '%' \"\\ \n\techo three, and on and on \n---\n\n";
const ADD_NODE = 'task.num_nodes = 2n;';

describe('a script', () => {
  it('of the corpus is returned unchanged', async () => {
    const { review } = await chainOf({ NodePolicy: 'task.num_nodes = 2;' });
    expect(corpus().length).toBeGreaterThan(100);
    for (const { text, source, changed, written } of corpus()) {
      const { task, answer } = await review(received({ task: source }));
      expect({ source, run: task.run }).toEqual({ source, run: text });
      expect({ source, task: inside(answer ?? '').task }).toEqual({ source, task: changed });
      expect({ text, written: YamlDocument.from({ run: text }).toString() }).toEqual({ text, written });
    }
  });

  it('with a line of one space is the same in a response, a review and a configuration', async () => {
    const { folder, specifiers } = policyFiles({ NodePolicy: ADD_NODE });
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const task = `run: ${JSON.stringify(SCRIPT)}\nnum_nodes: 1\n`;
    const { review } = await chainOf({ NodePolicy: ADD_NODE });
    const { answer } = await review(received({ task }));
    expect(YamlDocument.parse(String(inside(answer ?? '').task)).value).toEqual({
      run: SCRIPT,
      num_nodes: 2,
    });

    const configured = file('review.conf', `[skypilot]\nisolation = none\nadmin_policies = ${specifiers}\n`);
    const reviewed = await runProgramInProcess([
      'skypilot',
      'review',
      file('launch.body', body({ task })),
      '--config-file',
      configured,
      '--format',
      'json',
    ]);
    const { diff } = JSON.parse(reviewed.stdout) as { diff: { task: string } };
    const lines = diff.task.split('\n').filter((line) => line.startsWith(' ') || line.startsWith('+'));
    const shown = lines.filter((line) => !line.startsWith('+++')).map((line) => line.slice(1));
    expect(YamlDocument.parse(shown.join('\n')).value).toEqual({ run: SCRIPT, num_nodes: 2 });

    const config = file('config.yaml', `kubernetes:\n  pod_config:\n    script: ${JSON.stringify(SCRIPT)}\n`);
    const flags = ['--server', config, '--user', '/dev/null'];
    const merged = await runProgramInProcess(['skypilot', 'config', ...flags]);
    expect(YamlDocument.parse(merged.stdout).value).toEqual({
      kubernetes: { pod_config: { script: SCRIPT } },
    });
  });
});
