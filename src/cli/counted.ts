/** `1 row`, `2 rows`, `2 copies`. */
export const counted = (count: number, thing: string) =>
  `${count} ${count === 1 ? thing : thing.replace(/(y?)$/, (_, y) => (y ? 'ies' : 's'))}`
