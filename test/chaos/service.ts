import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import { emptyFolder, simulatorFlags } from '../support/ev-process.ts'
import { type Receiver, startReceiver } from '../support/http-receiver.ts'
import { beginService } from '../support/service-process.ts'
import { expectLedger, hasOpenWork } from './ledger.ts'
import { startWorkload, WORKLOAD_CONFIG, WORKLOAD_SCENARIO, type Workload } from './workload.ts'

type Service = ReturnType<typeof beginService>

export type ChaosOptions = {
  /** The data directory; a folder in `home` by default. */
  readonly dataDir?: string
  readonly args?: readonly string[]
  /** Options of the process; see `startEv`. */
  readonly process?: Parameters<typeof beginService>[2]
}

/** A service in a separate process, its simulated mail servers, and a receiver of its events. */
export type ChaosService = {
  readonly home: string
  readonly dataDir: string
  readonly key: string
  readonly receiver: Receiver
  /** The current process of the service. */
  readonly service: Service
  /** Starts the next process after the current one has ended. */
  start(): Service
  startWorkload(): Workload
  /** Waits until all work is done, stops the service, and checks its file against the responses. */
  expectLedger(workload: Workload): Promise<void>
}

/** Starts a service with a webhook endpoint; it stops with the test. */
export async function startChaosService(options: ChaosOptions = {}): Promise<ChaosService> {
  const home = emptyFolder()
  const dataDir = options.dataDir ?? join(home, 'data')
  const simulator = await startScenarioProcess(WORKLOAD_SCENARIO)
  const receiver = await startReceiver({ name: '127.0.0.1', answer: 204 })
  onTestFinished(async () => {
    await Promise.all([simulator.close(), receiver.close()])
  })
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify(WORKLOAD_CONFIG))
  writeFileSync(join(home, 'ca.pem'), receiver.ca)
  const args = [
    ...[
      ...simulatorFlags(simulator),
      '--data-dir',
      dataDir,
      '--plan',
      'team',
      '--concurrency',
      '40',
    ],
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
    home,
    dataDir,
    key,
    receiver,
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
