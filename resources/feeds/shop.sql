-- Tables that existed before the feeds began, as SHOW CREATE TABLE (and Dumpling) print them: Craft carries no exact types.
USE `shop`;

CREATE TABLE `customers` (
  `id` bigint(20) NOT NULL,
  `name` varchar(60) NOT NULL,
  `email` varchar(80) DEFAULT NULL,
  `balance` decimal(12,2) NOT NULL DEFAULT '0',
  `vip` tinyint(1) DEFAULT NULL,
  `created` datetime DEFAULT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `orders` (
  `order_id` bigint(20) unsigned NOT NULL,
  `customer_id` bigint(20) NOT NULL,
  `sku` varchar(20) DEFAULT NULL,
  `qty` int(11) DEFAULT NULL,
  `status` enum('new','paid','sent','back') DEFAULT NULL,
  `placed` timestamp(3) NULL DEFAULT NULL,
  `note` text DEFAULT NULL,
  PRIMARY KEY (`order_id`) /*T![clustered_index] CLUSTERED */,
  KEY `k1` (`customer_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `products` (
  `sku` varchar(20) NOT NULL,
  `title` varchar(100) DEFAULT NULL,
  `price` decimal(10,2) DEFAULT NULL,
  `stock` int(10) unsigned NOT NULL,
  `tags` json DEFAULT NULL,
  `weight` double DEFAULT NULL,
  PRIMARY KEY (`sku`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
