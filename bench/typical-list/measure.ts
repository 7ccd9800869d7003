import { exists } from './company.ts'
import { HeapClock } from './heap-clock.ts'
import type { Answer, Strategy } from './strategies.ts'
import { World, type WorldPlan } from './world.ts'

/** A strategy, and what became of the list. */
export type Measured = {
  readonly name: string
  readonly addresses: number
  /** When each result arrived, ms after the start. */
  readonly tookMs: readonly number[]
  readonly answers: Readonly<Record<Answer, number>>
  /** Existing mailboxes that were reported as missing, and the reverse. */
  readonly wrong: number
  readonly connections: number
  readonly recipients: number
  /** Connections that were refused. */
  readonly refused: number
  /** Times that a company blocked the client. */
  readonly blocks: number
  /** Times that the client came on the shared block list. */
  readonly listings: number
  readonly providers: readonly ProviderCounts[]
}

type ProviderCounts = {
  readonly name: string
  readonly connections: number
  readonly recipients: number
  readonly refused: number
  readonly blocks: number
}

/** Runs a strategy over a list, in virtual time. */
export async function measureStrategy(
  { name, verify }: Strategy,
  plan: WorldPlan,
): Promise<Measured> {
  const clock = new HeapClock()
  const world = new World(plan, clock)
  const tookMs: number[] = []
  const answers: Record<Answer, number> = { exists: 0, risky: 0, missing: 0, unknown: 0 }
  let wrong = 0
  let isDone = false
  const verified = verify(world, clock, (address, answer) => {
    tookMs.push(clock.now())
    answers[answer]++
    if (answer === (exists(address) ? 'missing' : 'exists')) wrong++
  }).finally(() => {
    isDone = true
  })
  await clock.run(() => isDone)
  await verified
  const providers = countByProvider(world)
  const total = (key: Exclude<keyof ProviderCounts, 'name'>) =>
    providers.reduce((sum, counts) => sum + counts[key], 0)
  return {
    name,
    addresses: world.addresses.length,
    tookMs,
    answers,
    wrong,
    connections: total('connections'),
    recipients: total('recipients'),
    refused: total('refused'),
    blocks: total('blocks'),
    listings: world.blockList.listings,
    providers,
  }
}

function countByProvider({ companies }: World): ProviderCounts[] {
  const groups = Map.groupBy(companies, ({ provider }) => provider.name)
  return [...groups].map(([name, members]) => {
    const sum = (key: keyof (typeof members)[0]['company']['counters']) =>
      members.reduce((all, { company }) => all + company.counters[key], 0)
    return {
      name,
      connections: sum('connections'),
      recipients: sum('recipients'),
      refused: sum('refused'),
      blocks: sum('blocks'),
    }
  })
}
