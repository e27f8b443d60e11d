/** `skypilot`: admin policies and layered configurations, tried without a SkyPilot. */
import { Command } from 'commander';
import { skypilotConfigCommand } from './skypilot-config.ts';
import { skypilotReviewCommand } from './skypilot-review.ts';

export function skypilotCommand(): Command {
  return new Command('skypilot')
    .description("Try SkyPilot's admin policies and look at its layered configuration.")
    .addCommand(skypilotReviewCommand())
    .addCommand(skypilotConfigCommand());
}
