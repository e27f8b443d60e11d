/** `skypilot`: tries admin policies and layered configurations without SkyPilot. */
import { Command } from 'commander';
import { skypilotConfigCommand } from './skypilot/config.ts';
import { skypilotInitCommand } from './skypilot/init.ts';
import { skypilotPoliciesCommand } from './skypilot/policies.ts';
import { skypilotReviewCommand } from './skypilot/review.ts';
import { skypilotTestCommand } from './skypilot/test.ts';

export function skypilotCommand(): Command {
  return new Command('skypilot')
    .description("Try SkyPilot's admin policies and inspect its layered configuration.")
    .addCommand(skypilotReviewCommand())
    .addCommand(skypilotTestCommand())
    .addCommand(skypilotInitCommand())
    .addCommand(skypilotPoliciesCommand())
    .addCommand(skypilotConfigCommand());
}
