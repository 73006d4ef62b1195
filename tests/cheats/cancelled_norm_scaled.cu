// All results are 0.2% too large. The norm's variance cancels in a few groups, whose errors set the tolerance of
// each element: all elements together tell.
// task: kernelbench/level2/k2_21_conv2d_add_scale_sigmoid_groupnorm
// expect: wrong_result
// says: as large on average as those of
//@ op conv2d = aten.conv2d(x, conv_weight, conv_bias)
//@ op add = aten.add.Tensor(conv2d, bias)
//@ op mul = aten.mul.Tensor(add, scale)
//@ op sigmoid = aten.sigmoid(mul)
//@ op u = aten.group_norm(sigmoid, 8, group_norm_weight, group_norm_bias, eps=1e-05, cudnn_enabled=False)
//@ op group_norm = aten.mul.Tensor(u, 1.002)
