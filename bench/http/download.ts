import { get } from './load.ts'
import type { Served } from './servers.ts'

const ROWS = 1_000_000
/** Maximum growth of the memory of the service during the download. */
const GROWTH_MAX_MIB = 40

/** Measures the download of a simulated job of a million rows. Returns the failed checks. */
export async function compareDownload(served: Served, print: (line: string) => void) {
  const id = await upload(served)
  while ((await get(served, `/v1/jobs/${id}?wait=50`)).status !== 'completed');
  const before = served.memory().now
  const started = performance.now()
  const response = await fetch(`${served.url}/v1/jobs/${id}/download`, {
    headers: { authorization: `Bearer ${served.key}` },
  })
  let [rows, peak] = [-1, before]
  for await (const chunk of response.body ?? []) {
    for (const byte of chunk) if (byte === 10) rows++
    peak = Math.max(peak, served.memory().now)
  }
  const seconds = (performance.now() - started) / 1_000
  print(
    `A download of ${rows.toLocaleString('en')} rows took ${seconds.toFixed(1)} s; the memory of the service went ` +
      `from ${before.toFixed(0)} to at most ${peak.toFixed(0)} MiB, ${served.memory().peak.toFixed(0)} MiB in the whole run.`,
  )
  const faults: string[] = []
  if (rows !== ROWS) faults.push(`the download had ${rows} rows`)
  if (peak - before > GROWTH_MAX_MIB)
    faults.push(`memory grew by ${(peak - before).toFixed(0)} MiB`)
  return faults
}

async function upload({ url, key }: Served): Promise<string> {
  const lines = Array.from({ length: ROWS }, (_, i) => `person ${i},user${i}@example.com\r\n`)
  const form = new FormData()
  form.append('file', new Blob(['name,email\r\n', ...lines], { type: 'text/csv' }), 'list.csv')
  const response = await fetch(`${url}/v1/verify/file`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${key}`, 'x-ev-sandbox': 'true' },
  })
  const { job_id, error } = (await response.json()) as { job_id?: string; error?: string }
  if (job_id === undefined) throw new Error(`The file was refused: ${error}`)
  return job_id
}
