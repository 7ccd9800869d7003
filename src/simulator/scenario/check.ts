import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { isLoopback } from '../loopback/loopback-network.ts'
import { BEHAVIORS, type Behavior } from '../smtp-host/behaviors.ts'
import type { Rule } from '../smtp-host/rule.ts'
import type { HostPlan, Scenario } from './scenario.ts'
import { SCENARIO } from './scenario-shape.ts'
import { Mismatch } from './shape.ts'

/** Finds the mistakes that a person makes in writing a scenario; throws `bad_input` with the place and what it takes. */
export function checkScenario(given: unknown): Scenario {
  try {
    SCENARIO(given, 'scenario')
    const scenario = given as Scenario
    for (const [name, plan] of Object.entries(scenario.hosts)) checkEngine(name, plan)
    checkAddresses(scenario.hosts)
    return scenario
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error
    throw new EvError('bad_input', sanitizeText(error.message, SENTENCE_MAX))
  }
}

/** Room for all keys and tempers. */
const SENTENCE_MAX = 1_000

function checkEngine(name: string, plan: HostPlan): void {
  const behavior: Behavior = BEHAVIORS[plan.behavior](plan)
  const rules = [...(plan.rules ?? []), ...(behavior.rules ?? [])]
  const tricks = behavior.dripMs !== undefined || behavior.strict === true || rules.some(isTrick)
  if (plan.engine !== undefined && tricks) {
    throw new Mismatch(
      `scenario.hosts[${JSON.stringify(name)}] has "engine": "smtp-server", which only gives replies; leave it out, or what is no reply.`,
    )
  }
}

const isTrick = (rule: Rule) =>
  rule.reply === undefined || rule.end !== undefined || !REFUSABLE.includes(rule.on)

/** Where the library asks our opinion. */
const REFUSABLE: readonly string[] = ['CONNECT', 'MAIL', 'RCPT']

/** Two servers cannot listen at one address; where nobody answers there may be many. */
function checkAddresses(hosts: Readonly<Record<string, HostPlan>>): void {
  const owners = new Map<string, { name: string; door: Behavior['door'] }>()
  for (const [name, plan] of Object.entries(hosts)) {
    const { door }: Behavior = BEHAVIORS[plan.behavior](plan)
    for (const ip of [plan.ip ?? []].flat().filter(isLoopback)) {
      const owner = owners.get(ip)
      if (owner !== undefined && (door === undefined || door !== owner.door)) {
        throw new Mismatch(
          `scenario.hosts gives ${ip} to ${owner.name} and to ${name}; each needs an address of its own.`,
        )
      }
      owners.set(ip, { name, door })
    }
  }
}
