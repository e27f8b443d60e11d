import type { Command } from 'commander';

/**
 * Has an action check the required options of its command, instead of the parser: that one would not say that `--befor` is unknown, but that
 * `--before` is missing.
 */
export function requireOptionsLast(command: Command): void {
  const required = command.options.filter(({ mandatory }) => mandatory);
  if (required.length === 0) {
    return;
  }
  for (const option of required) {
    option.makeOptionMandatory(false);
  }
  command.hook('preAction', () => {
    const missing = required.find((option) => command.getOptionValue(option.attributeName()) === undefined);
    if (missing !== undefined) {
      command.error(`error: required option '${missing.flags}' not specified`);
    }
  });
}
