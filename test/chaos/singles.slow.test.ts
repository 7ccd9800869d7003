import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import type { Scenario } from '../../src/world/scenario/scenario.ts'
import { startScenarioProcess, type WorldProcess } from '../../src/world/world-process.ts'
import { emptyFolder, towards } from '../support/ev-process.ts'
import { xorshift } from '../support/random.ts'
import { beginService, postWhole } from '../support/service-process.ts'

/** Enough to lose an answer with near certainty where it is written after it is sent: about two at each kill. */
const KILLS = Number(process.env.EV_KILLS ?? 6)
const CLIENTS = 20
const SEED = Number(process.env.EV_SEED ?? 20_261_123)
/** From when the service listens to its end. */
const LIFE_MS_MAX = 500

let world: WorldProcess
beforeAll(async () => {
  world = await startScenarioProcess(SCENARIO)
})
afterAll(() => world.close())

test('each single that was answered is in the history and charged, whenever the service is killed with -9', async () => {
  const home = emptyFolder()
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(CONFIG))
  const args = [...towards(world), '--plan', 'team', '--concurrency', '100']
  let service = beginService(home, args)
  await service.isUp
  const { key } = service
  const answered = new Set<string>()
  let stopped = false
  const ask = async (client: number) => {
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    for (let n = 0; !stopped; n++) {
      const email = `user${client}n${n}@d${client}.test`
      const body = JSON.stringify({ email })
      const answer = await postWhole(`${service.url}/v1/verify/single`, { headers, body })
      if (answer?.status === 200) answered.add(email)
      else await setTimeout(20)
    }
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, client) => ask(client)))
  const chance = xorshift(SEED)
  for (let kills = 0; kills < KILLS; kills++) {
    await setTimeout(chance() * LIFE_MS_MAX)
    await service.end('SIGKILL')
    service = beginService(home, args)
    await service.isUp
  }
  stopped = true
  await clients
  const client = new EvClient({ apiKey: key, baseUrl: service.url })
  const { credits_consumed } = await client.credits()
  expect((await service.end('SIGTERM')).code).toBe(0)

  const { history, charged, held } = ledgerIn(join(home, 'data'))
  expect(answered.size).toBeGreaterThan(0)
  expect([...answered].filter(email => !history.has(email))).toEqual([])
  expect({ credits_consumed, held }).toEqual({ credits_consumed: charged, held: 0 })
})

const CONFIG = {
  'ip-limits': { 'single-per-minute': 1_000_000 },
  plans: { team: { requests: 10_000, per: 'second', 'credits-per-day': 1_000_000 } },
}

/** Read from the file, whatever the service tells. */
function ledgerIn(dataDir: string) {
  const database = new Sqlite(join(dataDir, 'ev.sqlite'), { readonly: true })
  const pluck = (query: string) => database.prepare(query).pluck()
  const ledger = {
    history: new Set(pluck('select email from verification').all()),
    charged: pluck(
      `select count(*) from verification where cached = 0 and class <> 'unknown'`,
    ).get(),
    held: pluck('select sum(held) from credit').get(),
  }
  database.close()
  return ledger
}

const NAMES = Array.from({ length: CLIENTS }, (_, client) => `d${client}.test`)
const SCENARIO: Scenario = {
  mailboxes: ['user*'],
  domains: Object.fromEntries(NAMES.map(name => [name, { mx: [[10, `mx.${name}`]] as const }])),
  hosts: Object.fromEntries(NAMES.map(name => [`mx.${name}`, { temper: 'polite' }])),
}
