// Shows how well the vote of tools/lists/disposable.mjs finds what a source names that had no vote.
// Usage: node tools/lists/measure.mjs KEY...   Keys are those of PACKAGES in sources.mjs.
import { electDisposable } from './disposable.mjs'
import { withParents } from './names.mjs'
import { readSources } from './sources.mjs'

const all = readSources()
for (const key of process.argv.slice(2)) {
  const elected = new Set(electDisposable(readSources([key])))
  const found = [...all[key]].filter(name => withParents(name).some(part => elected.has(part)))
  const share = ((100 * found.length) / all[key].size).toFixed(1)
  console.log(`${key}: ${found.length} of ${all[key].size} (${share} %) without its vote`)
}
