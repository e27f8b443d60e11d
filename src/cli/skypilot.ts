/** `skypilot`: tries admin policies and layered configurations without SkyPilot. */
import { Command } from 'commander';
import { skypilotConfigCommand } from './skypilot-config.ts';
import { skypilotReviewCommand } from './skypilot-review.ts';

export function skypilotCommand(): Command {
  return new Command('skypilot')
    .description("Try SkyPilot's admin policies and inspect its layered configuration.")
    .addCommand(skypilotReviewCommand())
    .addCommand(skypilotConfigCommand());
}
