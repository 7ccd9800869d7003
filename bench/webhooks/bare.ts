// The baseline: the same requests over as many connections, without storage, signatures and
// lookups.
import { Pool } from 'undici'
import { systemRandom } from '../../src/platform/random.ts'
import { eventBody } from '../../src/webhooks/event.ts'
import { DATA, KIND } from './event.ts'
import { CONNECTIONS_MAX, type Cost, kindOfEndpoint, type SenderOptions } from './plan.ts'
import { answer, getCpuMs, peakRssMiB } from './process.ts'

const { plan, targets }: SenderOptions = JSON.parse(process.argv[2] ?? '')
let cpuBefore = 0

answer({
  start() {
    const bodies = Array.from({ length: plan.events }, bodyOf)
    cpuBefore = getCpuMs()
    const healthy = targets.urls.filter((_, n) => kindOfEndpoint(n) === 'healthy')
    for (const url of healthy) sendAll(new URL(url), bodies)
  },
  cost: (): Cost => ({ cpuMs: getCpuMs() - cpuBefore, peakRssMiB: peakRssMiB() }),
})

function bodyOf(): string {
  const id = `evt_${systemRandom.token(20)}`
  return eventBody({ id, kind: KIND, data: DATA, at: Date.now(), sandbox: false })
}

function sendAll({ origin, pathname }: URL, bodies: readonly string[]): void {
  const pool = new Pool(origin, { connections: CONNECTIONS_MAX, connect: { ca: targets.ca } })
  let next = 0
  const send = async () => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const request = { method: 'POST', path: pathname, headers: HEADERS, body } as const
      await (await pool.request(request)).body.dump()
    }
  }
  for (let n = 0; n < CONNECTIONS_MAX; n++) void send()
}

/** As many headers of the same length as those of ev. */
const HEADERS = {
  'content-type': 'application/json',
  'user-agent': 'ev/1.0.0',
  'x-ev-signature': 'f'.repeat(64),
  'webhook-id': `evt_${'0'.repeat(20)}`,
  'webhook-timestamp': '1790000000',
  'webhook-signature': `v1,${'A'.repeat(43)}=`,
}
