import { plansWith } from '../../account/plan.ts'
import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import type { Config } from '../../config/settings.ts'

/** The name of a plan that there is. */
export function checkedPlan(given: string, config: Config): string {
  const plans = plansWith(config.plans)
  if (plans.has(given)) return given
  const names = [...plans.keys()].join(', ')
  throw new EvError(
    'usage',
    `There is no plan “${cleanText(given)}”; there are ${names}. The config file may add others under "plans".`,
  )
}
