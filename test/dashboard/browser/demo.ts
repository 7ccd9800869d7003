import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { addUsage } from '../../../src/accounts/credits/usage.ts'
import { EvClient } from '../../../src/client/client.ts'
import { openDatabase, write } from '../../../src/db/database.ts'
import { DAY, systemClock } from '../../../src/platform/clock.ts'
import type { Scenario } from '../../../src/simulator/scenario.ts'
import { testAuthority } from '../../support/certificate.ts'
import { type Stage, stage } from './browser.ts'

export const DEMO_LIST = join(import.meta.dirname, '../../../fixtures/list/demo.csv')
const DEMO = join(import.meta.dirname, '../../../fixtures/simulator/demo.json')

/** A service with the demo scenario, more domains and hosts, and a host for webhooks. */
export function demoStage(more: Partial<Pick<Scenario, 'domains' | 'hosts'>> = {}): Stage {
  const demo: Scenario = JSON.parse(readFileSync(DEMO, 'utf8'))
  const set = stage({
    scenario: {
      ...demo,
      domains: { ...demo.domains, ...more.domains, 'hook.example': { a: ['127.0.0.1'] } },
      hosts: { ...demo.hosts, ...more.hosts },
    },
    args: [
      ...['--plan', 'enterprise', '--sessions-per-second', '50', '--greylist-delay', '1'],
      ...['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem'],
    ],
  })
  writeFileSync(join(set.home, 'ca.pem'), testAuthority().cert)
  return set
}

export const clientOf = (set: Stage) => new EvClient({ apiKey: set.key, baseUrl: set.url })

/** Seeds a month of usage for the chart. */
export async function seedUsage(set: Stage): Promise<void> {
  const database = await openDatabase(`sqlite:${join(set.home, 'data/ev.sqlite')}`, systemClock)
  const { account_id, api_key_id: key_id } = await clientOf(set).credits()
  const today = Math.floor(systemClock.now() / DAY) * DAY
  const rows = Array.from({ length: 29 }, (_, i) => {
    const many = Math.round(900 + 700 * Math.sin(i / 2.3) ** 2 + 15 * i)
    const share = { deliverable: 0.72, undeliverable: 0.16, risky: 0.08, unknown: 0.04 }
    return Object.entries(share).map(([kind, part]) => ({
      account_id,
      key_id,
      day: today - (29 - i) * DAY,
      class: kind,
      cached: 0,
      verifications: Math.round(many * part),
      credits: Math.round(many * part),
    }))
  }).flat()
  await write(database, trx => addUsage(trx, rows))
  await database.close()
}
