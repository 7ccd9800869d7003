import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { expect, test } from 'vitest'
import { EvClient } from '../../src/client/client.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { xorshift } from '../support/random.ts'
import { waitUntil } from '../support/wait.ts'
import { Disk, isSocket, readTrace, STRACE } from './disk-trace.ts'
import { startChaosService } from './service.ts'
import { expectedReason } from './workload.ts'

// After a kill, written data is still in the page cache; after a power cut it is not. `strace` logs
// each write, each fsync and each response of the service. From that log the test reconstructs the
// disk at the moment of a response: with all synced data, and with none or a part of the rest. This
// proves the order of writes, fsyncs and responses. It does not prove that a drive persists synced
// data, nor that the names of new files are durable.

const hasStrace = spawnSync('strace', ['-D', '-f', '--seccomp-bpf', 'true']).status === 0
const SINGLES = 20
const ROWS = 50
const SEED = Number(process.env.EV_SEED ?? 20_261_123)

test.skipIf(!hasStrace)(
  'acknowledged data survives a power cut at the moment of the response (needs strace)',
  async () => {
    const log = join(emptyFolder(), 'strace.log')
    const chaos = await startChaosService({ process: { node: createStraceWrapper(log) } })
    const client = new EvClient({ apiKey: chaos.key, baseUrl: chaos.service.url })
    const acknowledgements: Acknowledged[] = []
    for (let n = 0; n < SINGLES; n++) {
      const email = `user${n}@d${n}.test`
      expect((await client.verify(email)).reason).toBe(expectedReason(email))
      acknowledgements.push({ answer: `"email":"${email}"`, holds: hasSingle(email) })
    }
    const { key, id } = await client.keys.create({ name: 'old', scopes: ['verify:single'] })
    acknowledgements.push({ answer: key, holds: hasRow(`api_key where id = '${id}'`) })
    await client.keys.delete(id)
    acknowledgements.push({
      answer: 'HTTP/1.1 204',
      holds: hasRow(`api_key where id = '${id}' and revoked_at is not null`),
    })
    const emails = Array.from({ length: ROWS }, (_, n) => `user.batch.${n}@d${n % 20}.test`)
    const { job_id } = await client.batch(emails)
    acknowledgements.push({
      answer: job_id,
      holds: hasRow(`item where job_id = '${job_id}'`, ROWS),
    })
    // The write of the last response may still be running when the response arrives.
    await client.credits()
    await chaos.service.end('SIGKILL')
    await waitUntil(() => readFileSync(log, 'latin1').trimEnd().endsWith('killed by SIGKILL +++'))

    const random = xorshift(SEED)
    const disk = new Disk()
    const calls = readTrace(log)
    const waiting = [...acknowledgements]
    for (const call of calls) {
      // The rollback journal exists only before the service listens, until WAL mode is on.
      if (/ev\.sqlite(-wal)?$/.test(call.target)) disk.apply(call)
      if (!isSocket(call.target)) continue
      const text = call.bytes.toString()
      if (waiting[0] === undefined || !text.includes(waiting[0].answer)) continue
      if (!/^HTTP\/1\.1 20/.test(text)) continue
      const { answer, holds } = waiting.shift() as Acknowledged
      // First without any unsynced write, then three times with a random part of them.
      for (const share of [0, 0.5, 0.5, 0.9]) {
        expect(
          afterPowerCut(disk, () => random() < share, holds),
          answer,
        ).toEqual(['ok', true])
      }
    }
    expect(waiting.map(({ answer }) => answer)).toEqual([])
  },
)

/** Data that a response acknowledges. */
type Acknowledged = {
  /** A text in the response. */
  readonly answer: string
  /** Returns whether the database has the data. */
  readonly holds: (database: Sqlite.Database) => boolean
}

const hasRow =
  (of: string, count = 1): Acknowledged['holds'] =>
  database =>
    database.prepare(`select count(*) from ${of}`).pluck().get() === count

const hasSingle = (email: string) => hasRow(`verification where email = '${email}'`)

function afterPowerCut(disk: Disk, survives: () => boolean, holds: Acknowledged['holds']) {
  const folder = mkdtempSync(join(emptyFolder(), 'disk-'))
  disk.writeTo(folder, survives)
  const database = new Sqlite(join(folder, 'ev.sqlite'))
  try {
    return [database.pragma('integrity_check', { simple: true }), holds(database)]
  } finally {
    database.close()
    rmSync(folder, { recursive: true })
  }
}

/** Creates a program that runs Node under strace, and returns its path. */
function createStraceWrapper(log: string): string {
  const file = join(emptyFolder(), 'node')
  const options = STRACE.join(' ')
  writeFileSync(file, `#!/bin/sh\nexec strace ${options} -o ${log} ${process.execPath} "$@"\n`)
  chmodSync(file, 0o755)
  return file
}
