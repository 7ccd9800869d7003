import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/**
 * Maximum growth from the first minute to the last: the content changes, but must not accumulate.
 */
const GROWTH_MAX = 1.1
const MINUTE_MS = 60_000

type Need = { readonly heapMb: number; readonly nodes: number; readonly listeners: number }

/** Measures the browser while it shows a running list. Returns the failed checks. */
export async function watchMemory(
  page: Page,
  job: string,
  minutes: number,
  print: (line: string) => void,
): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable')
  await page.goto(`/lists/${job}`)
  print('\n| minute | script memory | nodes | listeners | progress |')
  print('|---|---|---|---|---|')
  const needs: Need[] = []
  for (let minute = 0; minute <= minutes; minute++) {
    if (minute > 0) await setTimeout(MINUTE_MS)
    await session.send('HeapProfiler.collectGarbage')
    const { metrics } = await session.send('Performance.getMetrics')
    const of = (name: string) => metrics.find(metric => metric.name === name)?.value ?? 0
    const need = {
      heapMb: of('JSHeapUsedSize') / 1e6,
      nodes: of('Nodes'),
      listeners: of('JSEventListeners'),
    }
    needs.push(need)
    const progress = await page.evaluate<string>(`document.querySelector('progress')?.value ?? ''`)
    print(
      `| ${minute} | ${need.heapMb.toFixed(2)} MB | ${need.nodes} | ${need.listeners} | ${progress} |`,
    )
  }
  const [, early] = needs
  const late = needs.at(-1)
  if (early === undefined || late === undefined) return []
  return (['heapMb', 'nodes', 'listeners'] as const)
    .filter(name => late[name] > early[name] * GROWTH_MAX)
    .map(name => `${name} grew from ${early[name]} to ${late[name]} while a list was watched`)
}
