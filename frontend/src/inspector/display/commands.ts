/** The commands that add to a record what it does not contain. */

const LOOK = 'attendo look MODEL "…"';

export const COMMANDS = {
  record: `${LOOK} -o record.json`,
  logit_lens: LOOK,
  attribution: `${LOOK} --attribution`,
  ablation: `${LOOK} --ablation`,
} as const;
