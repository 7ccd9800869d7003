import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fillDisk, mountSmallDisk } from '../support/small-disk.ts'
import { startChaosService } from './service.ts'

/** Room for the database before and after the disk is full. */
const DISK_MIB = 64

const disk = mountSmallDisk(DISK_MIB)

test.skipIf(disk === null)(
  'a full disk rejects lists with 507, reads work, no data is lost, and work resumes when space is freed (needs root)',
  async () => {
    const chaos = await startChaosService({
      dataDir: join(disk as string, 'data'),
      // Below the size of the small disk.
      args: ['--min-free-disk', '1'],
    })
    const { service, key } = chaos
    const workload = chaos.startWorkload()
    await workload.everyKind()

    const ballast = fillDisk(disk as string)
    const getStatus = async (path: string) => {
      const headers = { Authorization: `Bearer ${key}` }
      const response = await fetch(`${service.url}${path}`, { headers })
      await response.text()
      return response.status
    }
    // Single verifications continue while the file has free pages, and get 503 after that.
    await expect.poll(() => workload.refusals.get(507) ?? 0).toBeGreaterThan(REFUSALS_MIN)
    // Reads are answered meanwhile.
    expect(await getStatus('/livez')).toBe(200)
    expect(await getStatus('/v1/jobs')).toBe(200)
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
