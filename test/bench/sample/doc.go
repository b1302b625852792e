// Package sample has the statistics of measured figures: the median, and the range that has it with a probability of
// 95%. It assumes nothing about how the figures are distributed.
package sample
