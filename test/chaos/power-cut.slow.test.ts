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
import { chaosService } from './service.ts'
import { reasonInWorld } from './workload.ts'

// A kill leaves what was written in the memory of the system; a power cut does not. Here `strace` writes down each
// write and each fsync of the service, and each answer. The disk of the moment of an answer is made from that: with what
// was synced, and with none or any of what was not. That proves the order of writes, fsyncs and answers. It does not
// prove that a drive keeps what it was told to sync, nor that the names of new files are durable.

const hasStrace = spawnSync('strace', ['-D', '-f', '--seccomp-bpf', 'true']).status === 0
const SINGLES = 20
const ROWS = 50
const SEED = Number(process.env.EV_SEED ?? 20_261_123)

test.skipIf(!hasStrace)(
  'what was acknowledged survives a power cut at the moment of its answer (needs strace)',
  async () => {
    const log = join(emptyFolder(), 'strace.log')
    const chaos = await chaosService({ process: { node: straceInto(log) } })
    const client = new EvClient({ apiKey: chaos.key, baseUrl: chaos.service.url })
    const promises: Promised[] = []
    for (let n = 0; n < SINGLES; n++) {
      const email = `user${n}@d${n}.test`
      expect((await client.verify(email)).reason).toBe(reasonInWorld(email))
      promises.push({ answer: `"email":"${email}"`, holds: hasSingle(email) })
    }
    const { key, id } = await client.keys.create({ name: 'old', scopes: ['verify:single'] })
    promises.push({ answer: key, holds: hasRow(`api_key where id = '${id}'`) })
    await client.keys.delete(id)
    promises.push({
      answer: 'HTTP/1.1 204',
      holds: hasRow(`api_key where id = '${id}' and revoked_at is not null`),
    })
    const emails = Array.from({ length: ROWS }, (_, n) => `user.batch.${n}@d${n % 20}.test`)
    const { job_id } = await client.batch(emails)
    promises.push({ answer: job_id, holds: hasRow(`item where job_id = '${job_id}'`, ROWS) })
    // The write that carried the last answer may not be over yet when the answer is here.
    await client.credits()
    await chaos.service.end('SIGKILL')
    await waitUntil(() => readFileSync(log, 'latin1').trimEnd().endsWith('killed by SIGKILL +++'))

    const random = xorshift(SEED)
    const disk = new Disk()
    const calls = readTrace(log)
    const waiting = [...promises]
    for (const call of calls) {
      // There is a rollback journal only until the database is put into WAL mode, before the service listens.
      if (/ev\.sqlite(-wal)?$/.test(call.target)) disk.apply(call)
      if (!isSocket(call.target)) continue
      const text = call.bytes.toString()
      if (waiting[0] === undefined || !text.includes(waiting[0].answer)) continue
      if (!/^HTTP\/1\.1 20/.test(text)) continue
      const { answer, holds } = waiting.shift() as Promised
      // Nothing that was not synced, and three times any part of it.
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

/** What an answer promises. */
type Promised = {
  /** Text of the answer. */
  readonly answer: string
  /** Whether the database has it. */
  readonly holds: (database: Sqlite.Database) => boolean
}

const hasRow =
  (of: string, count = 1): Promised['holds'] =>
  database =>
    database.prepare(`select count(*) from ${of}`).pluck().get() === count

const hasSingle = (email: string) => hasRow(`verification where email = '${email}'`)

function afterPowerCut(disk: Disk, survives: () => boolean, holds: Promised['holds']) {
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

/** A program that runs Node under strace. */
function straceInto(log: string): string {
  const file = join(emptyFolder(), 'node')
  const options = STRACE.join(' ')
  writeFileSync(file, `#!/bin/sh\nexec strace ${options} -o ${log} ${process.execPath} "$@"\n`)
  chmodSync(file, 0o755)
  return file
}
