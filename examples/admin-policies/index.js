export { AddLabelsPolicy } from './add-labels-policy.js';
export { DisablePublicIpPolicy } from './disable-public-ip-policy.js';
export { DynamicKubernetesContextsUpdatePolicy } from './dynamic-kubernetes-contexts-update-policy.js';
export { EnforceAutostopPolicy } from './enforce-autostop-policy.js';
export { RateLimitLaunchPolicy } from './rate-limit-launch-policy.js';
export { RejectAllPolicy } from './reject-all-policy.js';
export { SetMaxAutostopIdleMinutesPolicy } from './set-max-autostop-idle-minutes-policy.js';
export { UseSpotForGpuPolicy } from './use-spot-for-gpu-policy.js';
