/** How to get what a record does not hold. */

const LOOK = 'attendo look MODEL "…"';

export const COMMANDS = {
  record: `${LOOK} -o record.json`,
  logit_lens: LOOK,
  attribution: `${LOOK} --attribution`,
  ablation: `${LOOK} --ablation`,
} as const;
