// Deliveries as in the service, without its HTTP API: events go into a database, requests come out.
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { openDatabase, write } from '../../src/db/database.ts'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { systemClock as clock } from '../../src/platform/clock.ts'
import { silentLog as log } from '../../src/platform/log.ts'
import { systemRandom as random } from '../../src/platform/random.ts'
import { createSecretBox } from '../../src/platform/secret-box.ts'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import { newSigningSecret, newWebhookId } from '../../src/webhooks/endpoint.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { emit } from '../../src/webhooks/event-store.ts'
import { createHttpsTransport } from '../../src/webhooks/https-transport.ts'
import { startDeliveries } from '../../src/webhooks/start-deliveries.ts'
import { DATA, KIND } from './event.ts'
import type { Cost, SenderOptions } from './plan.ts'
import { answer, getCpuMs, peakRssMiB } from './process.ts'

const ACCOUNT = 'acc_bench'
/** Events per transaction when all are written at once, as with the results of a long list. */
const GROUP = 50

const { plan, targets, folder }: SenderOptions = JSON.parse(process.argv[2] ?? '')
const secretBox = createSecretBox('bench', random)
const database = await openDatabase(`sqlite:${join(folder, 'ev.sqlite')}`, clock)
await write(database, async trx => {
  for (const url of targets.urls) {
    const { text, hint } = newSigningSecret(random)
    await createWebhook(trx, {
      id: newWebhookId(random),
      accountId: ACCOUNT,
      url,
      events: [KIND],
      active: true,
      description: null,
      secret: secretBox.encrypt(text),
      secretHint: hint,
      createdAt: clock.now(),
    })
  }
})
let cpuBefore = 0

answer({
  async start() {
    if (plan.perSecond === null) await emitAll()
    cpuBefore = getCpuMs()
    deliver()
    if (plan.perSecond !== null) void emitSteadily(plan.perSecond)
  },
  cost: (): Cost => ({ cpuMs: getCpuMs() - cpuBefore, peakRssMiB: peakRssMiB() }),
})

function deliver(): void {
  const post = createHttpsTransport({
    clock,
    ca: targets.ca,
    mayDial: createIpPolicy(['127.0.0.0/8']),
    // The URLs of the endpoints have IP addresses.
    resolver: { resolve: async () => ({ fault: 'no-name' }) },
  })
  const queue = createMemoryQueue(clock, log)
  startDeliveries({ database, queue, transport: post, secretBox, clock, log, version: '1.0.0' })
}

async function emitAll(): Promise<void> {
  for (let written = 0; written < plan.events; written += GROUP) {
    await emitSome(Math.min(GROUP, plan.events - written))
  }
}

/** Emits each event at its time, however long the previous one took. */
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
        accountId: ACCOUNT,
        kind: KIND,
        data: DATA,
        sandbox: false,
        now,
        dueAt: now,
        random,
      })
    }
  })
