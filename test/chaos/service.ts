import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { emptyFolder, towards } from '../support/ev-process.ts'
import { type Receiver, startReceiver } from '../support/http-receiver.ts'
import { beginService } from '../support/service-process.ts'
import { expectLedger, hasOpenWork } from './ledger.ts'
import { startWorkload, WORKLOAD_CONFIG, WORKLOAD_WORLD, type Workload } from './workload.ts'

type Service = ReturnType<typeof beginService>

export type ChaosOptions = {
  /** Where its data are; a folder in `home` when left out. */
  readonly dataDir?: string
  readonly args?: readonly string[]
  /** How its process is started; see `startEv`. */
  readonly process?: Parameters<typeof beginService>[2]
}

/** A service in a process of its own that is in trouble, its mail servers, and a receiver of its events. */
export type ChaosService = {
  readonly home: string
  readonly dataDir: string
  readonly key: string
  readonly world: SimulatorProcess
  readonly receiver: Receiver
  /** The process of the moment. */
  readonly service: Service
  /** Starts the next process, once this one has ended. */
  start(): Service
  startWorkload(): Workload
  /** Waits until all work is done, ends the service, and holds its file against what clients were told. */
  expectLedger(workload: Workload): Promise<void>
}

/** Starts one that listens, with an endpoint for events; it ends with its test. */
export async function chaosService(options: ChaosOptions = {}): Promise<ChaosService> {
  const home = emptyFolder()
  const dataDir = options.dataDir ?? join(home, 'data')
  const world = await startScenarioProcess(WORKLOAD_WORLD)
  const receiver = await startReceiver({ name: '127.0.0.1', answer: 204 })
  onTestFinished(async () => {
    await Promise.all([world.close(), receiver.close()])
  })
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(WORKLOAD_CONFIG))
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  const args = [
    ...[...towards(world), '--data-dir', dataDir, '--plan', 'team', '--concurrency', '40'],
    ...['--webhook-allow-ranges', '127.0.0.0/8', '--webhook-ca-file', 'ca.pem'],
    ...(options.args ?? []),
  ]
  const start = () => {
    const service = beginService(home, args, options.process)
    // A process may be killed before it listens.
    service.isUp.catch(() => {})
    return service
  }
  let service = start()
  await service.isUp
  const { key } = service
  const client = new EvClient({ apiKey: key, baseUrl: service.url })
  const events = ['batch.completed', 'verification.completed'] as const
  await client.webhooks.create({ url: receiver.url, events: [...events] })
  return {
    ...{ home, dataDir, key, world, receiver },
    get service() {
      return service
    },
    start() {
      service = start()
      return service
    },
    startWorkload: () => startWorkload(() => service, key),
    async expectLedger({ acknowledged }) {
      await expect.poll(() => hasOpenWork(dataDir), { interval: 100 }).toBe(false)
      const ended = await service.end('SIGTERM')
      expect(ended.code, ended.stderr).toBe(0)
      expectLedger(dataDir, acknowledged, receiver.received)
    },
  }
}
