/** `1 row`, `2 rows`, `2 copies`, `2 keys`. */
export const counted = (count: number, thing: string) =>
  `${count} ${count === 1 ? thing : thing.replace(/([^aeiou])y$|$/, (_, before) => (before ? `${before}ies` : 's'))}`
