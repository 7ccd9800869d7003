// Deliveries as the service makes them, without its HTTP: events go into a database, and requests come out.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openDatabase, write } from '../../src/db/database.ts'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { systemClock as clock } from '../../src/platform/clock.ts'
import { silentLog as log } from '../../src/platform/log.ts'
import { systemRandom as random } from '../../src/platform/random.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import { startDeliveries } from '../../src/webhooks/delivery/start-deliveries.ts'
import { newSigningSecret, newWebhookId } from '../../src/webhooks/endpoint.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import { createHttpsTransport } from '../../src/webhooks/transport/https-transport.ts'
import { DATA, KIND } from './event.ts'
import type { Cost, Errand } from './plan.ts'
import { answer, busyMs, peakRssMiB } from './process.ts'

const ACCOUNT = 'acc_bench'
/** Events that are written in one transaction where all come at once, as a long list's results are. */
const GROUP = 50

const { plan, places, folder }: Errand = JSON.parse(process.argv[2] ?? '')
const secretBox = createSecretBox('bench', random)
const database = await openDatabase(`sqlite:${join(folder, 'ev.sqlite')}`, clock)
await write(database, async trx => {
  for (const url of places.urls) {
    const { text, hint } = newSigningSecret(random)
    await createWebhook(trx, {
      ...{ id: newWebhookId(random), accountId: ACCOUNT, url, events: [KIND], active: true },
      ...{
        description: null,
        secret: secretBox.encrypt(text),
        secretHint: hint,
        createdAt: clock.now(),
      },
    })
  }
})
let busyBefore = 0

answer({
  async begin() {
    if (plan.perSecond === null) await emitAll()
    busyBefore = busyMs()
    deliver()
    if (plan.perSecond !== null) void emitSteadily(plan.perSecond)
  },
  cost: (): Cost => ({ cpuMs: busyMs() - busyBefore, peakRssMiB: peakRssMiB() }),
})

function deliver(): void {
  const post = createHttpsTransport({
    ...{ clock, ca: places.ca, mayDial: createIpPolicy(['127.0.0.0/8']) },
    // Its endpoints have addresses, not names.
    resolver: { resolve: async () => ({ fault: 'no-name' }) },
  })
  const queue = createMemoryQueue(clock, log)
  startDeliveries({ database, queue, transport: post, secretBox, clock, log, version: '1.0.0' })
}

async function emitAll(): Promise<void> {
  for (let told = 0; told < plan.events; told += GROUP) {
    await emitSome(Math.min(GROUP, plan.events - told))
  }
}

/** Each at its own time, however long the one before took. */
async function emitSteadily(perSecond: number): Promise<void> {
  const startedAt = clock.monotonicNow()
  for (let n = 0; n < plan.events; n++) {
    await setTimeout(Math.max(0, startedAt + (n * 1_000) / perSecond - clock.monotonicNow()))
    void emitSome(1)
  }
}

const emitSome = (count: number) =>
  write(database, async trx => {
    for (let n = 0; n < count; n++) {
      const now = clock.now()
      await emit(trx, {
        ...{ accountId: ACCOUNT, kind: KIND, data: DATA, sandbox: false, now, random },
      })
    }
  })
