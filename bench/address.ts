// Compares the speed of address parsing with validator's isEmail: node bench/address.ts
import { type LabeledAddress, typicalList, unusual } from './address/list.ts'
import { createParserVariants, PARSERS } from './address/variants.ts'
import { machine } from './engine/figures.ts'
import { measureVariants, rows } from './variants.ts'

const LENGTH = 20_000

console.log(`Machine: ${machine()}; medians, processor time.`)
compare(`A list of ${LENGTH.toLocaleString('en')} typical addresses`, typicalList(LENGTH))
compare(`The ${unusual.length} unusual addresses of the fixtures`, unusual)

function compare(title: string, list: readonly LabeledAddress[]): void {
  console.log(`\n### ${title}\n`)
  console.log('| variant | addresses/s | relative to isEmail |')
  console.log('|---|---|---|')
  for (const row of rows(measureVariants(createParserVariants(list)))) console.log(row)
  const accuracies = PARSERS.slice(1).map(([name, isGood]) => {
    const correct = list.filter(({ text, good }) => isGood(text) === good).length
    return `${name} ${((correct / list.length) * 100).toFixed(1)}%`
  })
  console.log(`\nCorrect: ${accuracies.join(', ')}.`)
}
