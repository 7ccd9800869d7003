import { type Result, toClass } from '../../engine/verdict/verdict.ts'

/** One row of a list, as the interface shows it (2.2), with its class. */
export const presentItem = ({ email, verdict, cached }: Result) => ({
  email,
  valid: verdict.valid,
  deliverable: verdict.deliverable,
  risk_level: verdict.risk,
  reason: verdict.reason,
  cached,
  class: toClass(verdict),
})
