import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { onFileFinished } from '../support/cleanup.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { chaosService } from './service.ts'

/** Room for the database before and after the trouble. */
const DISK_MIB = 64

const disk = smallDisk()

test.skipIf(disk === null)(
  'on a full disk lists are refused with 507, reading works, nothing is lost, and all goes on when there is room (needs root)',
  async () => {
    const chaos = await chaosService({
      dataDir: join(disk as string, 'data'),
      // Less than what the small disk has.
      args: ['--min-free-disk', '1'],
    })
    const { service, key } = chaos
    const workload = chaos.startWorkload()
    await workload.everyKind()

    const ballast = fill(disk as string)
    const statusOf = async (path: string) => {
      const headers = { Authorization: `Bearer ${key}` }
      const response = await fetch(`${service.url}${path}`, { headers })
      await response.text()
      return response.status
    }
    // Single verifications go on while the file has free pages, and are refused with 503 after that.
    await expect.poll(() => workload.refusals.get(507) ?? 0).toBeGreaterThan(REFUSALS_MIN)
    // What is only read is answered meanwhile.
    expect(await statusOf('/livez')).toBe(200)
    expect(await statusOf('/v1/jobs')).toBe(200)
    const refused = await fetch(`${service.url}/v1/verify/batch`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ emails: ['user1@d1.test'] }),
    })
    expect([refused.status, refused.headers.has('Retry-After')]).toEqual([507, true])

    rmSync(ballast)
    await workload.next()
    await workload.stop()
    await chaos.expectLedger(workload)
  },
)

const REFUSALS_MIN = 20

/** Takes all that is left on a disk; gives the file that does. */
function fill(folder: string): string {
  const file = join(folder, 'ballast')
  for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    const chunk = Buffer.alloc(bytes, 1)
    try {
      for (;;) writeFileSync(file, chunk, { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  expect(statfsSync(folder).bavail).toBe(0)
  return file
}

/** A folder on a disk of its own; null: none can be mounted here. */
function smallDisk(): string | null {
  const folder = join(emptyFolder(), 'disk')
  mkdirSync(folder)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', folder])
  if (mounted.status !== 0) return null
  onFileFinished(() => spawnSync('umount', ['--lazy', folder]))
  return folder
}
